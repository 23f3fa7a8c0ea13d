"""The machine that runs are made on, in words."""

from __future__ import annotations

import os
from pathlib import Path

_MODEL = "model name"


def machine() -> str:
    """Its processor and memory, such as ``2 cores, 24 GiB, Intel(R) Xeon(R) Processor``."""
    gibibytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    parts = [f"{os.cpu_count()} cores", f"{gibibytes:.0f} GiB", _processor()]
    return ", ".join(part for part in parts if part)


def _processor() -> str:
    """Its name, empty where Linux does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    names = (line.partition(":")[2].strip() for line in lines if line.startswith(_MODEL))
    return next(names, "")
