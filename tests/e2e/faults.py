"""Real faults, caused the way they happen: processes that die, pods that are deleted."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.lab.commands import system_environment


def kill_children(container_id: str, match: str) -> int:
    """SIGKILL the processes started by a container's first one whose name holds ``match``.

    From outside, as the kernel kills who is out of memory: an exec into the container would be a
    process of its own, and may hang on a busy node after all is done.

    Args:
        container_id: as in a pod's status, ``containerd://...``; of this machine.
        match: part of a command line or of a process's name.

    Returns:
        how many there were.
    """
    pids = _processes(container_id.rpartition("/")[2])
    first = {pid for pid in pids if _parent(pid) not in pids}
    killed = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            if _parent(pid) in first and match in _names(pid):
                os.kill(pid, signal.SIGKILL)
                killed += 1
    return killed


def kill(container_id: str) -> int:
    """SIGKILL all processes of a container at once, as when its node loses power.

    Args:
        container_id: as in a pod's status, ``containerd://...``; of this machine.

    Returns:
        how many there were.
    """
    killed = 0
    for pid in _processes(container_id.rpartition("/")[2]):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            killed += 1
    return killed


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


@contextlib.contextmanager
def partitioned(container_id: str, port: int) -> Iterator[None]:
    """A pod between which and a port of all others nothing gets through, and nobody is told.

    In the pod's own network, so that what is left of it goes with the pod.

    Args:
        container_id: of one of its containers, as in the pod's status; of this machine.
        port: TCP port of those that it asks.

    Raises:
        LookupError: no process of it is here.
        subprocess.CalledProcessError: the rules cannot be set.
    """
    pids = _processes(container_id.rpartition("/")[2])
    if not pids:
        raise LookupError(f"no process of container {container_id} is on this machine")

    def rules(change: str) -> None:
        for chain, end in (("OUTPUT", "--dport"), ("INPUT", "--sport")):
            inside = ("nsenter", "-t", str(pids[0]), "-n", "iptables", "-w")
            rule = (change, chain, "-p", "tcp", end, str(port), "-j", "DROP")
            subprocess.run((*inside, *rule), check=True, env=system_environment())

    rules("-I")
    try:
        yield
    finally:
        rules("-D")


def _processes(container_id: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and container_id in (entry / "cgroup").read_text():
                found.append(int(entry.name))
    return found


def _parent(pid: int) -> int | None:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return None


def _names(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text() + Path(f"/proc/{pid}/comm").read_text()
