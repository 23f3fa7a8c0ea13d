"""How an engine is told to take less memory."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_operator.api.engine import Engine
from headway_operator.decide.degradation.memory_share import keeps_kv_on_host, smaller

SECRET = {"secretKeyRef": {"name": "s", "key": "k"}}


def engine(*args: str, space: str | None = None, **more: Any) -> Engine:
    env = [] if space is None else [{"name": "VLLM_CPU_KVCACHE_SPACE", "value": space}]
    return Engine.model_validate({"image": "x", "args": list(args), "env": env, **more})


@pytest.mark.parametrize(
    ("args", "added"),
    [
        ([], "--gpu-memory-utilization=0.720"),
        (["--gpu-memory-utilization=0.5"], "--gpu-memory-utilization=0.400"),
        (["--gpu-memory-utilization", "0.5"], "--gpu-memory-utilization=0.400"),
        (["--gpu_memory_utilization=0.5"], "--gpu-memory-utilization=0.400"),
        (
            ["--gpu-memory-utilization=0.9", "--gpu-memory-utilization=0.5"],
            "--gpu-memory-utilization=0.400",
        ),
        (["--kv-cache-memory-bytes=1000"], "--kv-cache-memory-bytes=800"),
    ],
)
def test_what_is_declared_is_made_smaller(args: list[str], added: str) -> None:
    changed = smaller(engine(*args), 80)
    assert changed is not None
    assert list(changed.args) == [*args, added]


@pytest.mark.parametrize("wrong", ["--gpu-memory-utilization=much", "--kv-cache-memory-bytes=10G"])
def test_what_cannot_be_read_is_left_alone(wrong: str) -> None:
    assert smaller(engine(wrong), 80) is None
    assert smaller(engine("--gpu-memory-utilization"), 80) is None


@pytest.mark.parametrize(("before", "after"), [("10", "8"), ("2", "1"), ("1", None), ("x", None)])
def test_the_cpu_builds_cache_is_in_whole_gib(before: str, after: str | None) -> None:
    changed = smaller(engine(space=before), 80)
    assert (None if changed is None else changed.env[0].value) == after


def test_a_size_from_elsewhere_is_not_known() -> None:
    env = [{"name": "VLLM_CPU_KVCACHE_SPACE", "valueFrom": SECRET}]
    assert smaller(engine(env=env), 80) is None


@pytest.mark.parametrize(
    ("limits", "on_host"),
    [
        ({}, True),
        ({"cpu": "4", "memory": "8Gi"}, True),
        ({"nvidia.com/gpu": "1", "memory": "8Gi"}, False),
        ({"amd.com/gpu": "1"}, False),
    ],
)
def test_where_kv_blocks_are(limits: dict[str, str], on_host: bool) -> None:
    assert keeps_kv_on_host(engine(resources={"limits": limits})) == on_host
    assert keeps_kv_on_host(engine(resources={"limits": limits}, space="4"))


@given(st.integers(1, 100_000), st.sampled_from([80, 60, 40]))
def test_less_is_less_and_never_nothing(gib: int, percent: int) -> None:
    changed = smaller(engine(space=str(gib)), percent)
    if changed is not None:
        assert 0 < int(changed.env[0].value or "") < gib
