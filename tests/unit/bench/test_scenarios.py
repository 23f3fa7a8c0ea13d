from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from headway_runtime.bench.catalogue import named
from headway_runtime.bench.scenarios import (
    MAX_TRACE_TOKENS,
    OFFLINE_REQUESTS,
    SCENARIOS,
    Offer,
    Scenario,
)
from headway_runtime.bench.traces import read_azure, read_mooncake

CAPACITY = 29_000.0


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
        f"2023-11-16 18:15:{second:02}.6805900,{300 + second},{40 + second}\n"
        for second in range(46, 56)
    )
    for name in ("azure_llm_2023_conv.csv", "azure_llm_2023_code.csv"):
        (tmp_path / name).write_text(azure)
    rows = [
        {"timestamp": 3000 * i, "input_length": 1100, "output_length": 9, "hash_ids": [0, 1, i]}
        for i in range(2, 9)
    ]
    rows.append({"timestamp": 0, "input_length": 99_999, "output_length": 9, "hash_ids": [7]})
    text = "\n".join(json.dumps(row) for row in rows)
    (tmp_path / "mooncake_fast25_conversation.jsonl").write_text(text)
    return tmp_path


def test_azure_traces_are_read(traces: Path) -> None:
    rows = read_azure(traces / "azure_llm_2023_conv.csv")
    assert [(row.arrival_s, row.prompt_tokens, row.output_tokens) for row in rows[:2]] == [
        (0.0, 346, 86),
        (1.0, 347, 87),
    ]
    assert rows[0].prefix_blocks == ()


def test_mooncake_traces_are_read_with_their_prefixes(traces: Path) -> None:
    rows = read_mooncake(traces / "mooncake_fast25_conversation.jsonl")
    assert (rows[1].arrival_s, rows[1].prompt_tokens, rows[1].output_tokens) == (3.0, 1100, 9)
    assert rows[1].prefix_blocks == (0, 1, 3)


def test_names_are_unique_and_found_in_the_order_asked_for() -> None:
    names = [each.name for each in SCENARIOS]
    assert len(set(names)) == len(names)
    assert [each.name for each in named(["offline", "load-30"])] == ["offline", "load-30"]
    with pytest.raises(ValueError, match="load-31"):
        named(["load-31"])


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_a_scenario_offers_its_share_of_the_capacity(scenario: Scenario, traces: Path) -> None:
    offer = Offer(seed=1, capacity_tokens_per_s=CAPACITY, duration_s=200, traces=traces)
    workload = scenario.workload(offer)
    names = {each.name for each in workload.classes}
    assert {each.class_name for each in workload.requests} <= names
    if scenario.load is None:
        assert len(workload.requests) == OFFLINE_REQUESTS
        return
    assert workload.tokens / 200 == pytest.approx(scenario.load * CAPACITY, rel=0.15)
    assert list(workload.requests) == sorted(workload.requests, key=lambda each: each.arrival_s)
    assert workload == scenario.workload(offer)


def test_rows_of_a_trace_that_no_engine_takes_are_left_out(traces: Path) -> None:
    (scenario,) = named(["prefixes"])
    workload = scenario.workload(Offer(1, CAPACITY, traces=traces))
    assert {each.prompt_tokens for each in workload.requests} == {1100}
    assert max(each.prompt_tokens for each in workload.requests) < MAX_TRACE_TOKENS


def test_a_trace_keeps_its_order_from_where_the_seed_says(traces: Path) -> None:
    (scenario,) = named(["prefixes"])
    starts = set()
    for seed in range(5):
        workload = scenario.workload(Offer(seed, CAPACITY, traces=traces))
        last_blocks = [each.prefix_blocks[-1] for each in workload.requests]
        steps = {(b - a) % 7 for a, b in pairwise(last_blocks)}
        assert steps == {1}
        starts.add(last_blocks[0])
    assert len(starts) > 1


def test_without_traces_a_scenario_made_from_one_says_so() -> None:
    (scenario,) = named(["azure-chat"])
    with pytest.raises(ValueError, match="azure-chat"):
        scenario.workload(Offer(1, CAPACITY))
