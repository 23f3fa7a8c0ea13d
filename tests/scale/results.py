"""A results file: what was run, on what, when, and the figures."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def write(
    file: Path, command: str, versions: Mapping[str, str], figures: Mapping[str, Any]
) -> None:
    """Write a results file and show it."""
    result = {
        "command": command,
        "machine": machine(),
        "versions": {**versions, "python": platform.python_version()},
        "date": dt.datetime.now(tz=dt.timezone.utc).date().isoformat(),
        "figures": figures,
    }
    file.write_text(json.dumps(result, indent=2) + "\n")
    print(file.read_text())


def machine() -> str:
    """This machine in words."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory_gib:.0f} GiB, {_processor()}, no GPU"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least a share (0..1) of all values do not exceed.

    What never came counts as infinite, so that failures cannot make a result better: a percentile
    that falls on them is None, as it is without any value.
    """
    ordered = sorted(values)
    found = ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.inf
    return found if math.isfinite(found) else None
