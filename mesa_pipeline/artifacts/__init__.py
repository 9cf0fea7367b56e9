"""The only place that knows paths and file formats.

Every artifact is a JSON-lines file whose first line is a header with the fingerprint of all that went into it. A reader
compares that one line to tell whether the artifact is current; a writer replaces the file in one step. A seal, the hash of the
artifact's own content, tells whoever reads it whole that it was cut short or edited since. Work that takes long is
first appended to a journal (``<file>.partial``), which survives ``kill -9`` and is continued by the next run.

Text is written as ASCII JSON, so NUL bytes and lone surrogates survive the round trip. Nothing is pickled.
"""

from mesa_pipeline.artifacts.files import (
    Record,
    decode_arrays,
    encode_arrays,
    is_current,
    read_header,
    read_json,
    read_json_as,
    read_records,
    read_verified,
    write_bytes,
    write_json,
    write_records,
    write_sealed_json,
    write_text,
)
from mesa_pipeline.artifacts.fingerprints import dump_json, file_sha256, fingerprint, slug
from mesa_pipeline.artifacts.journal import Journal
from mesa_pipeline.artifacts.layout import LEDGER, REPLIES, VECTORS, Layout, exclusive
from mesa_pipeline.artifacts.services import RunningServices
from mesa_pipeline.artifacts.versions import content_version

__all__ = [
    "LEDGER",
    "REPLIES",
    "VECTORS",
    "Journal",
    "Layout",
    "Record",
    "RunningServices",
    "content_version",
    "decode_arrays",
    "dump_json",
    "encode_arrays",
    "exclusive",
    "file_sha256",
    "fingerprint",
    "is_current",
    "read_header",
    "read_json",
    "read_json_as",
    "read_records",
    "read_verified",
    "slug",
    "write_bytes",
    "write_json",
    "write_records",
    "write_sealed_json",
    "write_text",
]
