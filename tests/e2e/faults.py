"""Real faults, caused the way they happen: processes that die, pods that are deleted."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.kube import Cluster

# Runs in the container: kills the children of its first process whose command line or name matches.
_KILL_CHILDREN = """
import os, signal, sys
wanted, killed = sys.argv[1], 0
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        stat = open(f"/proc/{pid}/stat").read()
        words = open(f"/proc/{pid}/cmdline").read() + stat
    except OSError:
        continue
    parent = stat.rpartition(")")[2].split()[1]
    if parent == "1" and int(pid) != os.getpid() and wanted in words:
        os.kill(int(pid), signal.SIGKILL)
        killed += 1
print(killed)
"""


def kill_children(cluster: Cluster, namespace: str, pod: str, container: str, match: str) -> int:
    """SIGKILL the processes started by a container's first one whose name holds ``match``.

    Returns:
        how many there were.
    """
    said = cluster.kubectl(
        *("exec", "-n", namespace, pod, "-c", container, "--"),
        *("python3", "-c", _KILL_CHILDREN, match),
    )
    return int(said.strip())


@contextlib.contextmanager
def frozen(container_id: str) -> Iterator[None]:
    """A container whose processes exist and do nothing, as on a node that hangs.

    Args:
        container_id: as in a pod's status, ``containerd://...``; of this machine.

    Raises:
        LookupError: no process of it is here.
    """
    pids = _processes(container_id.rpartition("/")[2])
    if not pids:
        raise LookupError(f"no process of container {container_id} is on this machine")
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def _processes(container_id: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and container_id in (entry / "cgroup").read_text():
                found.append(int(entry.name))
    return found
