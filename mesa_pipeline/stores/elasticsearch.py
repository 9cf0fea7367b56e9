"""Texts in Elasticsearch."""
