"""Vectors in PostgreSQL with pgvector."""
