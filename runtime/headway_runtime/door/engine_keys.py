"""Which API keys the engine asks for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

KEY_VARIABLE = "VLLM_API_KEY"


def accepted_digests(app: Any, environment: Mapping[str, str]) -> frozenset[str]:
    """SHA-256 of each key that the engine takes, in hexadecimal; empty where it asks for none.

    Args:
        app: vLLM's application, whose state has the arguments it was started with.
        environment: of the process; its key counts only where the arguments name none, as in vLLM.
    """
    arguments = getattr(getattr(app, "state", None), "args", None)
    named = getattr(arguments, "api_key", None)
    keys = [named] if isinstance(named, str) else named
    if not isinstance(keys, (list, tuple)) or not keys:
        keys = [environment.get(KEY_VARIABLE)]
    return frozenset(
        hashlib.sha256(key.encode()).hexdigest() for key in keys if isinstance(key, str) and key
    )
