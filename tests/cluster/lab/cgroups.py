"""The control groups of the lab's pods, by which their processes are found and killed."""

import contextlib
import os
import signal
import time
from pathlib import Path

from .errors import LabError
from .processes import send_signal

# Below it the kubelet keeps its pods, apart from those of any other kubelet on the machine.
CGROUP_ROOT = "/headway-lab"
_MOUNT = Path("/sys/fs/cgroup")
_V2_CONTROLLERS = "+cpuset +cpu +io +memory +hugetlb +pids"
_SHARES_PER_CORE = 1024
_KILL_SECONDS = 20.0
_POLL_SECONDS = 0.1


def _roots() -> list[Path]:
    """Our group in every hierarchy: the only one with cgroup v2, one per controller with v1."""
    candidates = [_MOUNT] if _is_group(_MOUNT) else [path.resolve() for path in _MOUNT.iterdir()]
    hierarchies = {path for path in candidates if _is_group(path)}
    return sorted(hierarchy / CGROUP_ROOT.lstrip("/") for hierarchy in hierarchies)


def _is_group(directory: Path) -> bool:
    return (directory / "cgroup.procs").exists()


def create_cgroups() -> None:
    """Make our groups, as the kubelet wants its root to exist."""
    for root in _roots():
        if root.parent == _MOUNT:
            (_MOUNT / "cgroup.subtree_control").write_text(_V2_CONTROLLERS)
        root.mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):
            # In v1 a new cpuset is empty and takes no process until it is given its parent's sets.
            if (root / name).exists() and not (root / name).read_text().strip():
                (root / name).write_text((root.parent / name).read_text())
        if (root / "cpu.shares").exists():
            # What the kubelet gives all pods of a node together. Our root stands between them and
            # the machine's processes, and with the default all pods weigh like one thread.
            (root / "cpu.shares").write_text(str(_SHARES_PER_CORE * (os.cpu_count() or 1)))


def kill_containers() -> None:
    """Kill every process of every pod and wait for their end."""
    deadline = time.monotonic() + _KILL_SECONDS
    while pids := _members():
        if time.monotonic() > deadline:
            raise LabError(f"processes {sorted(pids)} of pods do not die: look at them with ps")
        for pid in pids:
            send_signal(pid, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)


def _members() -> set[int]:
    return {pid for root in _roots() for group in _groups(root) for pid in _processes(group)}


def _groups(root: Path) -> list[Path]:
    """A group and all below it. Groups may vanish meanwhile, which os.walk, unlike rglob, bears."""
    return [Path(directory) for directory, _, _ in os.walk(root)]


def _processes(group: Path) -> list[int]:
    try:
        return [int(pid) for pid in (group / "cgroup.procs").read_text().split()]
    except OSError:
        return []  # removed since it was listed: nothing lives in it


def remove_cgroups() -> None:
    """Remove our groups, the innermost first."""
    for root in _roots():
        for group in sorted(_groups(root), key=lambda path: -len(path.parts)):
            with contextlib.suppress(FileNotFoundError):
                group.rmdir()
