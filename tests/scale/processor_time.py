"""Processor time that processes have used."""

from __future__ import annotations

import os
from pathlib import Path

from tests.cluster.lab.paths import Paths
from tests.cluster.lab.processes import running_components


def cpu_seconds(pid: int) -> float:
    """Processor time of one process, its ended children apart."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_seconds_of_cluster() -> dict[str, float]:
    """Processor time of each program of the local cluster."""
    running = running_components(Paths.from_environment(os.environ))
    return {name: cpu_seconds(process.pid) for name, process in sorted(running.items())}
