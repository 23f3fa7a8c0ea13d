"""Processes of a pod, each with a session of its own, and ports for them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

STOP_S = 60


def free_ports() -> tuple[int, int, int]:
    """Three ports of loopback on which nobody listens."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(3)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        first, second, third = [int(each.getsockname()[1]) for each in sockets]
    return first, second, third


def spawn(command: list[str], log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a process that writes to the end of this log, in the log's directory."""
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            env={**inherited, **environment},
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def stop(process: subprocess.Popen[bytes]) -> None:
    """Let a process end, and kill what is left of it."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_S)
    kill_group(process)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its children, as a container's end does."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(STOP_S)
