"""Stable hashes of rendered objects."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_HEX_DIGITS = 16


def content_hash(value: Any) -> str:
    """Hash of a JSON value that does not depend on the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_HEX_DIGITS]


def present(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that say something: None, empty lists and empty texts are left out."""
    return {key: value for key, value in fields.items() if value not in (None, [], "", ())}
