"""Emptying an engine before it is stopped."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime import drain
from headway_runtime.exchange.statistics_file import process_started_ticks
from headway_runtime.exchange.statistics_record import EngineState
from tests.unit.runtime.engines import write_statistics

SERVED_SECONDS = 5.0
"""What is made up serves no longer: a test whose drain sends too little is to fail, and to end."""


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def now(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def wait(busy_until_s: float, timeout_s: float) -> tuple[bool, float]:
    clock = Clock()
    idle = drain.wait_until_idle(
        lambda: clock.now_s - 100 < busy_until_s, timeout_s, clock.now, clock.sleep
    )
    return idle, clock.now_s - 100


def this_process() -> dict[str, int]:
    return {"pid": os.getpid(), "process_started_ticks": process_started_ticks(os.getpid())}


def test_an_idle_engine_is_still_given_the_time_that_endpoints_need() -> None:
    idle, waited_s = wait(0, 30)
    assert idle
    assert waited_s == pytest.approx(drain.LEAST_SECONDS, abs=0.3)


def test_a_busy_engine_is_waited_for() -> None:
    idle, waited_s = wait(12, 30)
    assert idle
    assert 12 + drain.QUIET_SECONDS - 0.3 <= waited_s < 13.5


def test_an_engine_that_never_empties_is_waited_for_no_longer_than_the_timeout() -> None:
    idle, waited_s = wait(1000, 30)
    assert not idle
    assert waited_s == pytest.approx(30, abs=0.3)


@given(st.floats(0, 100), st.floats(0, 60))
def test_the_wait_is_bounded_both_ways(busy_until_s: Any, timeout_s: Any) -> None:
    _, waited_s = wait(busy_until_s, timeout_s)
    assert drain.LEAST_SECONDS - 0.01 <= waited_s <= max(timeout_s, drain.LEAST_SECONDS) + 0.3


@pytest.mark.parametrize(
    ("running", "waiting", "busy"), [(1, 0, True), (0, 1, True), (0, 0, False)]
)
def test_an_engine_is_busy_with_what_it_has_in_hand(
    tmp_path: Path, running: Any, waiting: Any, busy: Any
) -> None:
    write_statistics(tmp_path, running=running, waiting=waiting, **this_process())
    assert drain.is_busy(tmp_path) == busy


def test_any_engine_process_of_the_container_counts(tmp_path: Path) -> None:
    write_statistics(tmp_path, rank=0, **this_process())
    write_statistics(tmp_path, rank=1, running=1, **this_process())
    assert drain.is_busy(tmp_path)


@pytest.mark.parametrize(
    "header",
    [
        {"pid": 2**31 - 1},
        {"process_started_ticks": 1},
        {"state": int(EngineState.STOPPED)},
    ],
    ids=["process is gone", "process id has another process", "engine has stopped"],
)
def test_what_a_dead_engine_left_behind_does_not_count(tmp_path: Path, header: Any) -> None:
    write_statistics(tmp_path, running=5, **{**this_process(), **header})
    assert not drain.is_busy(tmp_path)


def test_an_engine_that_has_no_statistics_yet_serves_nothing(tmp_path: Path) -> None:
    (tmp_path / "engine-0.statistics").write_bytes(b"")
    assert not drain.is_busy(tmp_path)


def answer_once(path: Path, answer: bytes) -> tuple[threading.Thread, list[bytes]]:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    server.settimeout(SERVED_SECONDS)
    received: list[bytes] = []

    def serve() -> None:
        connection, _ = server.accept()
        connection.settimeout(SERVED_SECONDS)
        with server, connection, suppress(TimeoutError):
            while not received or b"\r\n\r\n" not in received[0] or not received[0][-1:].isdigit():
                piece = connection.recv(1000)
                if not piece:  # who sends less gives up waiting for the answer, and closes
                    return
                received[:] = [b"".join(received) + piece]
            connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    return thread, received


@pytest.mark.parametrize(("status", "marked"), [(b"200 OK", True), (b"503 No", False)])
def test_the_pod_is_marked_unready_through_the_sidecars_socket(
    tmp_path: Path, status: int, marked: Any
) -> None:
    path = tmp_path / drain.SOCKET_NAME
    thread, received = answer_once(path, b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")
    assert drain.mark_unready(path) == marked
    thread.join()
    assert received[0].startswith(b"POST /drain ")
    assert int(received[0].rpartition(b"\r\n")[2]) == process_started_ticks(1)


def test_a_dead_sidecar_stops_no_drain(tmp_path: Path) -> None:
    assert not drain.mark_unready(tmp_path / drain.SOCKET_NAME)


def test_it_runs_isolated_from_where_it_was_installed() -> None:
    command = [sys.executable, "-I", drain.__file__, "--help"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
