from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.bench.arms import HEADWAY, parse_all
from headway_runtime.bench.catalogue import named
from headway_runtime.bench.runs import Group, interleaved, pending
from headway_runtime.bench.scenarios import KV_PRESSURE_BLOCKS

ARMS = tuple(parse_all(["headway", "stock-512-priority", "stock-8192-fcfs", "static-64"]))
GROUP = Group(tuple(named(["load-70", "tpot-15"])), ARMS, (1, 2, 3), control=HEADWAY)


def test_all_arms_run_with_a_seed_before_the_next_seed_begins() -> None:
    seeds = [run.seed for run in interleaved(GROUP, "qwen3-8b")]
    assert seeds == sorted(seeds)
    assert len(seeds) == 2 * 3 * (len(ARMS) + 1)


def test_arms_of_one_scenario_and_seed_follow_each_other_and_the_control_comes_last() -> None:
    runs = interleaved(GROUP, "qwen3-8b")
    for start in range(0, len(runs), len(ARMS) + 1):
        block = runs[start : start + len(ARMS) + 1]
        assert len({(run.scenario.name, run.seed) for run in block}) == 1
        assert {run.arm for run in block[:-1]} == set(ARMS)
        assert [run.is_control for run in block] == [False] * len(ARMS) + [True]
        assert block[-1].arm == HEADWAY


def test_the_order_of_arms_differs_between_seeds_and_is_the_same_again() -> None:
    orders = [run.arm for run in interleaved(GROUP, "s")]
    assert orders == [run.arm for run in interleaved(GROUP, "s")]
    size = len(ARMS) + 1
    assert len({tuple(orders[i : i + size]) for i in range(0, len(orders), size)}) > 1


def test_names_are_unique() -> None:
    names = [run.name for run in interleaved(GROUP, "qwen3-8b")]
    assert len(set(names)) == len(names)
    assert "qwen3-8b.load-70.s1.headway.control" in names


@given(st.sets(st.integers(0, 29)))
def test_what_is_done_is_not_run_again_and_the_rest_keeps_its_order(done: set[int]) -> None:
    runs = interleaved(GROUP, "s")
    names = {runs[index].name for index in done}
    left = pending([GROUP, GROUP], "s", names, None)
    assert left == [run for run in runs if run.name not in names]


@pytest.mark.parametrize(
    ("kv_blocks", "expected"), [(None, "load-70"), (KV_PRESSURE_BLOCKS, "kv-pressure")]
)
def test_scenarios_for_another_engine_are_left_out(kv_blocks: int | None, expected: str) -> None:
    group = Group(tuple(named(["load-70", "kv-pressure"])), (HEADWAY,), (1,))
    assert [run.scenario.name for run in pending([group], "s", (), kv_blocks)] == [expected]
