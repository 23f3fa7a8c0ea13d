"""The lab's processes. The process table is the only record of them.

Every process is started with two marks in its environment: the state directory it belongs to and
its component. What runs is what /proc shows with these marks, so there are no pid files that could
name a dead process, or one of somebody else that got the same number, after a crash or a reboot.
Children inherit the marks; a component leads its session and runs the program of that name.
"""

import os
import signal
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .commands import system_environment
from .errors import LabError
from .paths import Paths

_STATE_MARK = "HEADWAY_LAB_STATE"
_COMPONENT_MARK = "HEADWAY_LAB_COMPONENT"
_SHIM = "containerd-shim-runc-v2"
_PROC = Path("/proc")
_SESSION_FIELD = 3  # of /proc/PID/stat, counted after the program's name
_STOP_SECONDS = 20.0
_POLL_SECONDS = 0.05
_LOG_LINES_SHOWN = 15


@dataclass(frozen=True)
class Process:
    """A process of this lab, seen alive in the process table."""

    pid: int
    component: str


def running_components(paths: Paths, proc: Path = _PROC) -> dict[str, Process]:
    """The lab's live components by name."""
    found = (_component(entry, paths.state) for entry in _entries(proc))
    return {process.component: process for process in found if process is not None}


def container_shims(paths: Paths, proc: Path = _PROC) -> list[int]:
    """The pids of the containers' parents, which outlive containerd by design."""
    return [
        int(entry.name)
        for entry in _entries(proc)
        if _program(entry) == _SHIM and _environment(entry).get(_STATE_MARK) == str(paths.state)
    ]


def _entries(proc: Path) -> list[Path]:
    return [entry for entry in proc.iterdir() if entry.name.isdigit()]


def _component(entry: Path, state: Path) -> Process | None:
    environment = _environment(entry)
    component = environment.get(_COMPONENT_MARK)
    if component is None or environment.get(_STATE_MARK) != str(state):
        return None
    if _program(entry) != component or not _leads_session(entry):
        return None
    return Process(int(entry.name), component)


def _leads_session(entry: Path) -> bool:
    """False for a child that was forked and has not become another program yet."""
    fields = _read(entry / "stat").rpartition(")")[2].split()
    return len(fields) > _SESSION_FIELD and fields[_SESSION_FIELD] == entry.name


def _environment(entry: Path) -> dict[str, str]:
    """A process's environment as it was at its start; empty for zombies and vanished ones."""
    pairs = (item.partition("=") for item in _read(entry / "environ").split("\0"))
    return {name: value for name, separator, value in pairs if separator}


def _program(entry: Path) -> str:
    return Path(_read(entry / "cmdline").partition("\0")[0]).name


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def start_component(paths: Paths, argv: Sequence[str | Path], **environment: str) -> None:
    """Start a component in the background, unless it runs; it is named after its program."""
    component = Path(argv[0]).name
    if component in running_components(paths):
        return
    marks = {_STATE_MARK: str(paths.state), _COMPONENT_MARK: component}
    paths.logs.mkdir(parents=True, exist_ok=True)
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    try:
        # Not subprocess.Popen, which wants to wait for its children: these outlive this program. In
        # a session of their own, so that Ctrl-C and the end of a terminal spare them.
        os.posix_spawn(
            argv[0],
            [str(part) for part in argv],
            system_environment(**environment, **marks),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(_log_file(paths, component)), append, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
    except OSError as error:
        raise LabError(f"cannot start {component}: {error}") from error


def require_running(paths: Paths, components: Iterable[str]) -> None:
    """Raise LabError with the end of its log when one of the components has died."""
    alive = running_components(paths)
    for component in components:
        if component not in alive:
            log = _log_file(paths, component)
            lines = log.read_text(errors="replace").splitlines() if log.exists() else []
            end = "\n".join(lines[-_LOG_LINES_SHOWN:])
            raise LabError(f"{component} has stopped; the end of {log}:\n{end}")


def _log_file(paths: Paths, component: str) -> Path:
    return paths.logs / f"{component}.log"


def stop_components(paths: Paths, components: Iterable[str]) -> None:
    """Stop components together and wait for their end; what does not heed SIGTERM is killed."""
    names = set(components)
    for kind in (signal.SIGTERM, signal.SIGKILL):
        alive = [process for name, process in running_components(paths).items() if name in names]
        for process in alive:
            send_signal(process.pid, kind)
        if _wait_until_gone(paths, names):
            return
    raise LabError(f"cannot stop {', '.join(sorted(names))}: look at `status`")


def send_signal(pid: int, kind: signal.Signals) -> None:
    """Signal a process, which may be gone by now."""
    try:
        os.kill(pid, kind)
    except ProcessLookupError:
        return


def _wait_until_gone(paths: Paths, names: set[str]) -> bool:
    deadline = time.monotonic() + _STOP_SECONDS
    while time.monotonic() < deadline:
        if not names & running_components(paths).keys():
            return True
        time.sleep(_POLL_SECONDS)
    return False


def kill(pids: Iterable[int]) -> None:
    """Kill processes that hold nothing worth saving."""
    for pid in pids:
        send_signal(pid, signal.SIGKILL)
