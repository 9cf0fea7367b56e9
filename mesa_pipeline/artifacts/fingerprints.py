"""Names for content: fingerprints of values and files, and safe file names of identifiers."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

FINGERPRINT_CHARS = 20
SLUG_CHARS = 40


def dump_json(value: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, ASCII. Raises ``ValueError`` on NaN and infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def fingerprint(*parts: Any) -> str:
    """Hex digest of JSON-able values: equal exactly when the values are."""
    return hashlib.sha256(dump_json(parts).encode("ascii")).hexdigest()[:FINGERPRINT_CHARS]


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def slug(identifier: str) -> str:
    """File name for an identifier of any content; distinct identifiers get distinct names, and none is ever a path."""
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", identifier).strip("-")[:SLUG_CHARS]
    digest = hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{readable}-{digest}" if readable else digest
