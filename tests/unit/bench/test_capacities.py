"""Capacities: what measures them, and who takes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway_runtime.bench import catalogue, results
from headway_runtime.bench.command_line import parser, read_settings
from headway_runtime.bench.results import Result
from headway_runtime.bench.scenarios import (
    CAPACITY,
    CAPACITY_ARM,
    CAPACITY_SCENARIOS,
    measured_capacities,
)


def measured(
    scenario: str, tokens_per_s: float, shape: str = "tiny", arm: str = CAPACITY_ARM
) -> Result:
    return {
        "family": CAPACITY,
        "scenario": scenario,
        "shape": shape,
        "arm": arm,
        "summary": {"middle_tokens_per_s": tokens_per_s},
    }


def test_capacities_are_the_means_of_what_stock_reached_with_each_mix() -> None:
    found = [
        measured("capacity-standard", 30_000),
        measured("capacity-standard", 31_000),
        measured("capacity-standard", 9_000, arm="headway"),
        measured("capacity-batch-0", 20_000),
        {**measured("load-90", 1.0), "family": "standard"},
    ]
    assert measured_capacities(found) == {"standard": 30_500, "batch-0": 20_000}


def test_capacities_of_two_models_are_not_mixed() -> None:
    with pytest.raises(ValueError, match="several models: large, small"):
        measured_capacities(
            [measured("capacity-standard", 1, "small"), measured("capacity-standard", 2, "large")]
        )


def test_every_mix_has_a_scenario_that_measures_its_capacity() -> None:
    measuring = {each.name for each in CAPACITY_SCENARIOS}
    assert {f"{CAPACITY}-{each.mix}" for each in catalogue.ALL} == measuring
    (kv_pressure,) = catalogue.named(["kv-pressure"])
    (its_capacity,) = catalogue.named(["capacity-kv-pressure"])
    assert kv_pressure.kv_blocks == its_capacity.kv_blocks
    assert kv_pressure.source == its_capacity.source


def test_capacities_are_taken_from_results_and_a_given_one_goes_before(tmp_path: Path) -> None:
    for mix, tokens_per_s in (("standard", 30_500), ("batch-0", 20_000), ("prefixes", 26_000)):
        result = {
            "name": f"tiny.capacity-{mix}",
            "family": "capacity",
            "arm": "stock-8192-fcfs",
            "scenario": f"capacity-{mix}",
            "shape": "tiny",
            "summary": {"middle_tokens_per_s": tokens_per_s},
        }
        results.write(tmp_path, result)
    options = parser("run", None).parse_args(
        ["--out", "o", "--capacities", str(tmp_path), "--capacity", "batch-0=1000"]
    )
    settings = read_settings(options, begun_s=0.0)
    wanted = catalogue.named(["tpot-15", "batch-0", "prefixes", "azure-chat"])
    assert [settings.capacity(each) for each in wanted] == [30_500, 1_000, 26_000, 29_000]
