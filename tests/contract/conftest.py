"""Imports vLLM once, whose own imports warn; skips these tests where there is none."""

from __future__ import annotations

import os
import warnings

# Read when vLLM is imported: no usage statistics, no search for models on the network.
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

collect_ignore_glob: list[str] = []

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    try:
        import tests.contract.engines  # noqa: F401
    except ModuleNotFoundError as missing:
        if missing.name not in ("vllm", "torch"):
            raise
        collect_ignore_glob.append("test_*.py")
