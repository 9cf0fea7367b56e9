"""Vectors in PostgreSQL with pgvector, found as in the process; above a size, faster and nearly so (decision 0104)."""

from mesa_pipeline.stores.pgvector.store import PgvectorStore

__all__ = ["PgvectorStore"]
