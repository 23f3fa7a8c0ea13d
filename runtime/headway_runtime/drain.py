"""Empties an engine before its container is stopped: the engine container's ``preStop``.

Run as ``python3 -I drain.py --run-dir DIR --timeout SECONDS``. It marks the pod unready through the
sidecar's socket, so that no new request comes, and waits until the engine has nothing in hand: at
least 5 s, since endpoints take that long to disappear everywhere, and at most the time-out.
"""

from __future__ import annotations

import argparse
import http.client
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

# An isolated interpreter does not search the directory that this package was installed in.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from headway_runtime.exchange import SOCKET_NAME, statistics_file
from headway_runtime.exchange.statistics_record import EngineState

LEAST_SECONDS = 5.0
QUIET_SECONDS = 1.0
"""The engine must stay idle this long: a request may be between the HTTP server and the engine."""

_POLL_SECONDS = 0.2
_SIDECAR_TIMEOUT_S = 2.0


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("sidecar", timeout=_SIDECAR_TIMEOUT_S)
        self._path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_SIDECAR_TIMEOUT_S)
        self.sock.connect(self._path)


def mark_unready(socket_path: Path) -> bool:
    """Tell the sidecar to be unready; whether it has agreed. A dead sidecar stops no drain.

    It is told which container is being stopped: the next one in this pod is not.
    """
    container = str(statistics_file.container_started_ticks())
    connection = _UnixConnection(socket_path)
    try:
        connection.request("POST", "/drain", body=container)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def is_busy(run_dir: Path) -> bool:
    """Whether any engine process of this container has requests in hand."""
    return any(_has_requests(path) for path in statistics_file.find_files(run_dir))


def wait_until_idle(
    busy: Callable[[], bool],
    timeout_s: float,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    least_s: float = LEAST_SECONDS,
) -> bool:
    """Wait for quiet; whether it came before the time-out.

    Args:
        busy: asked repeatedly whether requests are in hand.
        timeout_s: longest wait.
        now: monotonic clock, seconds.
        sleep: lets time pass.
        least_s: shortest wait, also if the longest one is shorter.
    """
    started_s = quiet_since_s = now()
    timeout_s = max(timeout_s, least_s)
    while True:
        if busy():
            quiet_since_s = now()
        if now() - started_s >= least_s and now() - quiet_since_s >= QUIET_SECONDS:
            return True
        if now() - started_s >= timeout_s:
            return False
        sleep(_POLL_SECONDS)


def main(command_line: list[str]) -> int:
    """Drain; the process's exit code is 0 whatever happens, since Kubernetes goes on regardless."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--timeout", type=float, required=True)
    options = parser.parse_args(command_line)
    mark_unready(options.run_dir / SOCKET_NAME)
    wait_until_idle(lambda: is_busy(options.run_dir), options.timeout)
    return 0


def _has_requests(path: Path) -> bool:
    try:
        statistics = statistics_file.read(path, records=0)
    except (OSError, statistics_file.StatisticsFileError):
        return False
    header, load = statistics.header, statistics.load
    started = statistics_file.process_started_ticks(header.pid)
    # What a process left behind that is gone, or whose id another one has now, means nothing.
    if started != header.process_started_ticks or header.state == EngineState.STOPPED:
        return False
    return load.running + load.waiting > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
