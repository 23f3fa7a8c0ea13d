"""What these tests run: a pod whose engine is real, and a collector of traces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import stack
from tests.engine.collector import Collector, collecting
from tests.engine.pod import Pod, running
from tests.engine.processes import free_ports
from tests.engine.sharing import KEYS, policy


@pytest.fixture(scope="session", autouse=True)
def _model() -> None:
    """The model; quick where it is there already."""
    stack.lab("engine")


@pytest.fixture(scope="package")
def collector() -> Iterator[Collector]:
    """A collector of traces."""
    with collecting() as found:
        yield found


@pytest.fixture(scope="package")
def pod(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[Pod]:
    """A pod whose engine asks for keys, is traced, and has KV blocks for 1,024 tokens.

    Two API servers take its requests in. The last test of all stops it.
    """
    folder: Path = tmp_path_factory.mktemp("pod")
    made = Pod(
        folder,
        free_ports(),
        flags=[
            *("--otlp-traces-endpoint", collector.url),
            *("--api-key", *KEYS.values()),
            *("--num-gpu-blocks-override", "9"),
            *("--api-server-count", "2"),
            # It tells which of them took a request in.
            "--enable-log-requests",
        ],
        environment={"OTEL_BSP_SCHEDULE_DELAY": "200"},
    )
    with running(made, policy()):
        yield made
