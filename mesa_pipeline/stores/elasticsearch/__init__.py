"""Texts in Elasticsearch, ranked as in the process: by the statistics of their own place, whatever else the index holds.

Written for Elasticsearch 9.0 and later, by its documentation and source; tried against an emulator alone (docs/stores.md).
Elasticsearch 8 refuses the client's version 9. The exactness does not rest on the server's arithmetic, see decision 0109.
"""

from mesa_pipeline.stores.elasticsearch.store import ElasticsearchStore

__all__ = ["ElasticsearchStore"]
