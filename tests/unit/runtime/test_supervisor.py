"""The sidecar as a process: its server may die, its probes go on."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.runtime.policies import POD, SERVICE, policy, publish


def children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(each) for each in listed.split()]


def ask(port: int, path: str) -> int | None:
    """The status of the answer; None without one."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()


def wait_for(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


@pytest.fixture
def sidecar(
    tmp_path: Path, unused_tcp_port_factory: Callable[[], int]
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    (tmp_path / "run").mkdir()
    publish(tmp_path / "policy", policy(1, 0, 0))
    port = unused_tcp_port_factory()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "HEADWAY_RUN_DIR": str(tmp_path / "run"),
        "HEADWAY_POLICY_DIR": str(tmp_path / "policy"),
        "HEADWAY_SERVICE_UID": SERVICE,
        "HEADWAY_POD_UID": POD,
        "HEADWAY_POLICY_PORT": str(unused_tcp_port_factory()),
        "HEADWAY_METRICS_PORT": str(port),
    }
    command = [sys.executable, "-m", "headway_runtime.sidecar"]
    with subprocess.Popen(command, env=environment) as process:
        wait_for(lambda: ask(port, "/startedz") == 200)
        yield process, port
        process.terminate()


def test_killing_the_server_makes_no_probe_fail_and_another_one_takes_over(
    sidecar: tuple[subprocess.Popen[bytes], int],
) -> None:
    process, port = sidecar
    [server] = children(process.pid)
    os.kill(server, signal.SIGKILL)
    assert ask(port, "/readyz") == 200
    assert server not in children(process.pid)


def test_it_ends_by_itself_when_told_to(sidecar: tuple[subprocess.Popen[bytes], int]) -> None:
    process, _ = sidecar
    process.terminate()
    assert process.wait(timeout=60) == 0
