from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from headway_runtime.bench.arms import (
    APPLIED_FILE,
    ARM_FILE,
    HEADWAY,
    Arm,
    Kind,
    Order,
    Seating,
    ablations,
    grid,
    parse,
    parse_all,
    priorities,
    rivals,
    rules,
    static_batches,
)
from headway_runtime.bench.arms_file import ArmsFile
from headway_runtime.bench.hidden import HIDING
from headway_runtime.bench.mixes import standard, three_tpots
from headway_runtime.bench.rivals.choice import rival_of, rule_of
from headway_runtime.bench.static_batch import StaticBatch
from headway_runtime.scheduling.planner import plan_step

UNPLANNED = (Kind.STOCK, Kind.STATIC_BATCH, Kind.RULE)
QUEUED = [parse("stock-queued-256"), parse("stock-queued-64-priority")]
ALL = [
    HEADWAY,
    *grid(),
    *static_batches(),
    *rivals(),
    *ablations(),
    *rules(),
    parse("vtc-2048"),
    *QUEUED,
]


def test_the_grid_is_the_one_to_beat() -> None:
    # At budgets of 384 and 512 a threshold of 512 changes nothing.
    assert len(grid()) == 7 * 2 * 2 - 3 * 2
    assert {each.token_budget for each in grid()} == {256, 384, 512, 768, 1024, 2048, 8192}
    assert [each.batch for each in static_batches()] == [32, 64, 128, 256]


@pytest.mark.parametrize("arm", ALL, ids=lambda each: each.name)
def test_names_tell_arms_apart(arm: Arm) -> None:
    assert parse(arm.name) == arm


def test_other_numbers_are_arms_too() -> None:
    assert parse("stock-640-priority-long256") == Arm(Kind.STOCK, 640, Order.PRIORITY, 256)
    assert [each.name for each in parse_all(["headway", "static"])] == [
        "headway",
        *("static-32", "static-64", "static-128", "static-256"),
    ]
    assert parse("sarathi-28-priority") == Arm(Kind.SARATHI, order=Order.PRIORITY, tbt_ms=28)
    assert parse("niyama-3") == Arm(Kind.NIYAMA, alpha_ms=3)
    assert parse("plas-2048") == Arm(Kind.RULE, 2048, rule="plas")
    assert parse("stock-queued-9") == Arm(Kind.STOCK, 512, queued=9)


@pytest.mark.parametrize(
    "name",
    [
        "stock-many",
        "stock-queued-0",
        "stock-queued-9-fcfs",
        "vtc-",
        "vtc-0",
        "sarathi-0",
        "sarathi-30-fcfs",
        "niyama-",
        "headway-no-",
        "headway-no-luck",
    ],
)
def test_what_is_no_arm_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"unknown arm '{name}'"):
        parse(name)


def test_groups_stand_for_all_of_theirs() -> None:
    named = [each.name for each in parse_all(["rivals", "ablations"])]
    assert {"sarathi-30", "sarathi-30-priority", "niyama", "niyama-0"} <= set(named)
    assert {f"headway-no-{part}" for part in ("clock", "margin", "order")} <= set(named)
    assert len(set(named)) == len(named)


@pytest.mark.parametrize("arm", ALL, ids=lambda each: each.name)
def test_every_arm_that_is_planned_has_a_planner_of_its_own(arm: Arm) -> None:
    is_headways = rival_of(arm).planner is plan_step
    is_hidden = arm.part in HIDING
    assert is_headways == (is_hidden or arm.kind in UNPLANNED or arm.kind is Kind.HEADWAY)
    assert arm.is_planned == (arm.kind not in UNPLANNED)
    assert (rule_of(arm, {}) is not None) == (arm.kind is Kind.RULE)


@pytest.mark.parametrize("arm", ALL, ids=lambda each: each.name)
def test_a_seating_survives_its_document(arm: Arm) -> None:
    seating = Seating(arm, 7, {"interactive": 0, "batch": 1}, {"acme": 3})
    assert Seating.from_json(seating.to_json()) == seating


def test_classes_with_the_sooner_first_token_come_first() -> None:
    mix = {each.traffic_class.name: each.traffic_class for each in (*standard(), *three_tpots())}
    given = priorities(list(mix.values()))
    assert given.pop("batch") == 1
    assert set(given.values()) == {0}


def test_the_engine_reads_what_is_wanted_and_says_what_is_in_force(tmp_path: Path) -> None:
    file = ArmsFile(tmp_path, "0.26.0", is_async=True)
    assert file.wanted() is None
    seating = Seating(parse("static-64"), 3)
    (tmp_path / ARM_FILE).write_text(seating.to_json())
    assert file.wanted() == seating
    file.applied(seating)
    word = json.loads((tmp_path / APPLIED_FILE).read_text())
    assert word.pop("engine_started_s") > 0
    assert word == {
        "arm": "static-64",
        "serial": 3,
        "engine_version": "0.26.0",
        "async_scheduling": True,
    }


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"arm": {"kind": "other"}, "serial": 1}'])
def test_a_document_that_is_none_changes_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / ARM_FILE).write_text(text)
    assert ArmsFile(tmp_path, "0.26.0", is_async=True).wanted() is None


def waiting(*names: str) -> list[SimpleNamespace]:
    return [SimpleNamespace(request_id=name) for name in names]


def test_a_static_batch_lets_nobody_in_before_all_are_done() -> None:
    batch = StaticBatch(2)
    assert batch.limit({"a", "b", "c"}, waiting("a", "b", "c")) == 2
    assert batch.limit({"a", "b", "c"}, waiting("c")) == 2
    assert batch.limit({"b", "c", "d"}, waiting("c", "d")) == 1
    assert batch.limit({"c", "d", "e"}, waiting("c", "d", "e")) == 2


def test_a_static_batch_takes_what_is_there() -> None:
    assert StaticBatch(8).limit({"a"}, waiting("a")) == 1
    assert StaticBatch(8).limit(set(), waiting()) == 0
