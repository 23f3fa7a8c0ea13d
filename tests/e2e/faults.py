"""Real faults, caused the way they happen: processes that die, pods that are deleted."""

from __future__ import annotations

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
