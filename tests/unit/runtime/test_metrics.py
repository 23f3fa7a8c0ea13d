"""The pod's metrics, made from what its engines tell."""

from __future__ import annotations

from dataclasses import replace
from math import exp
from pathlib import Path
from typing import Any

import pytest

from headway_runtime.exchange.class_record import WINDOW_NS, ClassRecord, Windows
from headway_runtime.exchange.histogram import BUCKETS, bucket_of
from headway_runtime.exchange.refusal_counts import Counts
from headway_runtime.exchange.statistics_record import NOT_TOLD
from headway_runtime.policy import MAX_CLASSES, Mode, Policy, TrafficClass, WhenUnmet
from headway_runtime.scheduling.admission.refusal import RefusalReason
from headway_runtime.scheduling.timing.forgetting import MEMORY_S
from headway_runtime.sidecar.engines import read_engines
from headway_runtime.sidecar.metrics import PodCollector, PodView
from headway_runtime.sidecar.token_load import FRESH_NS
from tests.unit.runtime.engines import BLANK, write_statistics
from tests.unit.runtime.policies import policy

NOW_NS = 1_700_000_000 * 10**9
SECOND_NS = 10**9
CHAT = TrafficClass("chat", ttft_ms=500, tpot_ms=50)
FREE = TrafficClass("free")


def step(ended_s_ago: float, lasted_s: float = 0.0) -> Any:
    ended_ns = NOW_NS - round(ended_s_ago * SECOND_NS)
    return replace(BLANK, wall_time_ns=ended_ns, step_ns=round(lasted_s * SECOND_NS))


def metrics(
    run_dir: Path, in_force: Policy | None = None, refusals: Counts | None = None
) -> dict[tuple[str, ...], float]:
    engines = read_engines(run_dir, records=1024, with_classes=True)
    view = PodView(engines, in_force, {}, draining=False, now_ns=NOW_NS, refusals=refusals or {})
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in PodCollector(lambda: view).collect()
        for sample in family.samples
    }


def utilisation(run_dir: Path) -> float:
    return metrics(run_dir)["headway_utilisation_ratio",]


def test_utilisation_is_the_busy_share_of_the_last_ten_seconds(tmp_path: Path) -> None:
    write_statistics(tmp_path, step(20, 5), step(3, 2), step(1, 1))
    assert utilisation(tmp_path) == pytest.approx(0.3)


def test_a_step_that_began_before_the_window_counts_for_its_part_in_it(tmp_path: Path) -> None:
    write_statistics(tmp_path, step(9, 5), step(0, 1))
    assert utilisation(tmp_path) == pytest.approx(0.2)


def test_steps_that_the_ring_no_longer_holds_are_not_taken_for_idle_time(tmp_path: Path) -> None:
    busy = [step(number / 100, 0.01) for number in range(300, -1, -1)]
    write_statistics(tmp_path, *busy, slots=128)
    assert utilisation(tmp_path) == pytest.approx(1.0)


@pytest.mark.parametrize(("ended_s_ago", "busy"), [(1.9, True), (2.1, False)])
@pytest.mark.parametrize("sampled", [True, False])
def test_an_engine_without_a_step_in_two_seconds_is_idle(
    tmp_path: Path, ended_s_ago: float, busy: bool, sampled: bool
) -> None:
    sample = {"gpus": (900_000, 500_000), "sampled_ns": NOW_NS} if sampled else {}
    write_statistics(tmp_path, step(ended_s_ago, 1), **sample)
    assert (utilisation(tmp_path) > 0) is busy


def test_an_engine_that_has_done_nothing_is_idle(tmp_path: Path) -> None:
    assert utilisation(tmp_path) == 0
    write_statistics(tmp_path)
    assert utilisation(tmp_path) == 0


def test_sampled_gpus_count_before_steps(tmp_path: Path) -> None:
    write_statistics(tmp_path, step(0, 9), gpus=(250_000, 125_000), sampled_ns=NOW_NS)
    found = metrics(tmp_path)
    assert found["headway_utilisation_ratio",] == 0.25
    assert found["headway_memory_bandwidth_utilisation_ratio",] == 0.125


def test_memory_bandwidth_is_told_only_where_gpus_are_sampled(tmp_path: Path) -> None:
    write_statistics(tmp_path, step(0, 1))
    assert ("headway_memory_bandwidth_utilisation_ratio",) not in metrics(tmp_path)


def test_utilisation_is_the_mean_over_the_engines(tmp_path: Path) -> None:
    write_statistics(tmp_path, step(0, 1), rank=0, gpus=(500_000, 300_000), sampled_ns=NOW_NS)
    write_statistics(tmp_path, step(5, 1), rank=1, gpus=(900_000, 900_000), sampled_ns=NOW_NS)
    found = metrics(tmp_path)
    assert found["headway_utilisation_ratio",] == 0.25
    assert found["headway_memory_bandwidth_utilisation_ratio",] == pytest.approx(0.15)


TOKEN_LOAD = ("headway_token_load_ratio",)
STEP_OVERHEAD = ("headway_step_overhead_ratio",)


def test_what_is_offered_is_the_mean_over_the_engines_that_tell_it(tmp_path: Path) -> None:
    for rank, offered in enumerate([(600_000, 50_000), (1_400_000, 70_000), (NOT_TOLD, NOT_TOLD)]):
        write_statistics(tmp_path, rank=rank, running=1, offered=offered, written_ns=NOW_NS)
    found = metrics(tmp_path)
    assert found[TOKEN_LOAD] == pytest.approx(1.0)
    assert found[STEP_OVERHEAD] == pytest.approx(0.06)


def test_what_no_engine_tells_of_what_is_offered_is_absent(tmp_path: Path) -> None:
    for rank in range(2):
        write_statistics(tmp_path, rank=rank, running=1, written_ns=NOW_NS)
        assert not {TOKEN_LOAD, STEP_OVERHEAD} & set(metrics(tmp_path))


def test_an_engine_that_has_never_made_a_step_is_offered_nothing(tmp_path: Path) -> None:
    write_statistics(tmp_path, written_ns=NOW_NS)
    found = metrics(tmp_path)
    assert found[TOKEN_LOAD] == 0
    assert STEP_OVERHEAD not in found
    # One that makes steps and does not tell is another matter.
    write_statistics(tmp_path, BLANK, written_ns=NOW_NS)
    assert TOKEN_LOAD not in metrics(tmp_path)


@pytest.mark.parametrize(("age_ns", "told"), [(FRESH_NS, True), (FRESH_NS + 1, False)])
@pytest.mark.parametrize(("running", "waiting"), [(1, 0), (0, 1)])
def test_an_engine_with_work_that_tells_nothing_more_is_not_believed(
    tmp_path: Path, age_ns: int, told: bool, running: int, waiting: int
) -> None:
    written_ns, in_hand = NOW_NS - age_ns, {"running": running, "waiting": waiting}
    write_statistics(tmp_path, offered=(500_000, 50_000), written_ns=written_ns, **in_hand)
    found = metrics(tmp_path)
    assert [found.get(TOKEN_LOAD), found.get(STEP_OVERHEAD)] == (
        [0.5, 0.05] if told else [None] * 2
    )


@pytest.mark.parametrize("age_s", [0, 15, 3600])
def test_an_engine_without_work_is_offered_ever_less(tmp_path: Path, age_s: int) -> None:
    written_ns = NOW_NS - age_s * SECOND_NS
    write_statistics(tmp_path, offered=(500_000, 50_000), written_ns=written_ns)
    found = metrics(tmp_path)
    assert found[TOKEN_LOAD] == pytest.approx(0.5 * exp(-age_s / MEMORY_S))
    assert found[STEP_OVERHEAD] == 0.05


def test_what_the_policy_asks_for_is_told(tmp_path: Path) -> None:
    found = metrics(
        tmp_path,
        policy(theta_ppm=150_000, token_budget=512, max_batch_size=8, mode=Mode.SHADOW),
    )
    assert found["headway_theta_ratio",] == 0.15
    assert found["headway_policy_token_budget_tokens",] == 512
    assert found["headway_policy_max_batch_requests",] == 8


def test_what_the_policy_leaves_open_is_absent(tmp_path: Path) -> None:
    for in_force in (None, policy()):
        names = {name for name, *_ in metrics(tmp_path, in_force)}
        assert not names & {
            "headway_theta_ratio",
            "headway_policy_token_budget_tokens",
            "headway_policy_max_batch_requests",
        }


def test_a_threshold_of_zero_is_told(tmp_path: Path) -> None:
    assert metrics(tmp_path, policy(theta_ppm=0))["headway_theta_ratio",] == 0


def windows(*ratios: float) -> Windows:
    counts = [0] * BUCKETS
    for ratio in ratios:
        counts[bucket_of(ratio)] += 1
    return Windows(current=counts)


def record(name: str = "chat", **fields: Any) -> ClassRecord:
    return ClassRecord(name, **{"revision": 1, "window_start_ns": NOW_NS, **fields})


def test_every_class_of_the_policy_is_told_and_no_other(tmp_path: Path) -> None:
    write_statistics(tmp_path, classes=[record("gone", requests_total=5)])
    found = metrics(tmp_path, policy(classes=(CHAT, FREE)))
    of_classes = {labels: value for labels, value in found.items() if "class" in labels[0]}
    assert of_classes == {
        ("headway_class_requests_total", "chat"): 0,
        ("headway_class_requests_total", "free"): 0,
        ("headway_class_attained_requests_total", "chat"): 0,
        ("headway_class_attained_requests_total", "free"): 0,
    }


def test_totals_are_summed_over_the_engines(tmp_path: Path) -> None:
    for rank in range(3):
        totals = {"requests_total": 10, "attained_total": rank}
        write_statistics(tmp_path, rank=rank, classes=[record(**totals)])
    found = metrics(tmp_path, policy(classes=(CHAT,)))
    assert found["headway_class_requests_total", "chat"] == 30
    assert found["headway_class_attained_requests_total", "chat"] == 3


def test_ratios_are_percentiles_over_all_engines(tmp_path: Path) -> None:
    write_statistics(tmp_path, rank=0, classes=[record(ttft=windows(*[0.5] * 95))])
    write_statistics(tmp_path, rank=1, classes=[record(ttft=windows(*[1.0, 2.0, 3.0, 4.0, 5.0]))])
    found = metrics(tmp_path, policy(classes=(CHAT,)))
    assert found["headway_class_recent_ttft_ratio", "chat"] == 0.5
    write_statistics(tmp_path, rank=0, classes=[record(ttft=windows(*[0.5] * 90))])
    found = metrics(tmp_path, policy(classes=(CHAT,)))
    assert found["headway_class_recent_ttft_ratio", "chat"] == 1.0


def test_ratios_that_have_grown_old_are_absent(tmp_path: Path) -> None:
    name = "headway_class_recent_tpot_ratio", "chat"
    for age_ns, told in ((2 * WINDOW_NS - 1, True), (2 * WINDOW_NS, False)):
        old = record(window_start_ns=NOW_NS - age_ns, tpot=windows(1.0))
        write_statistics(tmp_path, classes=[old])
        assert (name in metrics(tmp_path, policy(classes=(CHAT,)))) is told


def test_ratios_of_a_target_that_is_gone_are_absent(tmp_path: Path) -> None:
    write_statistics(tmp_path, classes=[record(ttft=windows(1.0), tpot=windows(1.0))])
    only_ttft = TrafficClass("chat", ttft_ms=1)
    names = {name for name, *_ in metrics(tmp_path, policy(classes=(only_ttft,)))}
    assert "headway_class_recent_ttft_ratio" in names
    assert "headway_class_recent_tpot_ratio" not in names


def test_what_was_dropped_is_not_told(tmp_path: Path) -> None:
    write_statistics(tmp_path, step(0, 1))
    found = metrics(tmp_path, policy())
    assert not [each for each in found if each[0] == "headway_plan_seconds_total"]
    quantiles = [labels[1] for labels in found if labels[0] == "headway_recent_step_seconds"]
    assert quantiles == ["0.5", "0.99"]


def refused(found: dict[tuple[str, ...], float]) -> dict[tuple[str, ...], float]:
    return {labels[1:]: value for labels, value in found.items() if "refused" in labels[0]}


def test_requests_refused_are_told_by_class_and_reason(tmp_path: Path) -> None:
    counts = {("chat", "QueueFull"): 2, ("chat", "ObjectiveUnmet"): 3}
    classes = (replace(CHAT, when_unmet=WhenUnmet.SHED, max_queued=9), FREE)
    found = metrics(tmp_path, policy(classes=classes), counts)
    assert found["headway_refused_requests_total", "chat", "QueueFull"] == 2
    assert found["headway_refused_requests_total", "chat", "ObjectiveUnmet"] == 3
    assert len(refused(found)) == 2


def test_refusals_are_counted_from_nothing_where_there_may_be_some(tmp_path: Path) -> None:
    shed = replace(CHAT, when_unmet=WhenUnmet.SHED)
    found = refused(metrics(tmp_path, policy(classes=(shed, FREE)), {}))
    assert found == {("chat", "ObjectiveUnmet"): 0}


def test_refusals_are_told_of_the_policys_classes_and_known_reasons_only(tmp_path: Path) -> None:
    counts = {("gone", "QueueFull"): 2, ("chat", "Foreign"): 3}
    full = replace(CHAT, max_queued=9)
    assert set(refused(metrics(tmp_path, policy(classes=(full,)), counts)).values()) == {0}
    assert not refused(metrics(tmp_path, None, counts))


def test_refusals_have_two_series_for_each_class_at_most(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(2 * MAX_CLASSES)]
    counts = {(name, reason.value): 1 for name in names for reason in RefusalReason}
    classes = tuple(
        TrafficClass(name, ttft_ms=1, when_unmet=WhenUnmet.SHED, max_queued=1)
        for name in names[:MAX_CLASSES]
    )
    assert len(refused(metrics(tmp_path, policy(classes=classes), counts))) == 2 * MAX_CLASSES


def test_how_programs_fare_is_told_once_one_has_ended(tmp_path: Path) -> None:
    write_statistics(tmp_path, step(1))
    assert ("headway_program_stretch_ratio",) not in metrics(tmp_path)
    write_statistics(tmp_path, step(1), rank=1, stretch=2_500_000)
    assert metrics(tmp_path)["headway_program_stretch_ratio",] == 2.5
