"""What is said of where metrics come from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headway_operator.decide import decide
from headway_operator.observe.engine_metrics.sample import EngineSample, ServiceMetrics, Source
from headway_operator.snapshot import Snapshot
from tests.unit.operator.decide.tuned_service import tuned
from tests.unit.operator.samples import (
    NOW,
    carried_out,
    condition,
    later,
    ready_pod,
    settled,
    snapshot,
)

SAMPLE = EngineSample(*([0.0] * 13))


def measured(source: Source | None, since: float = 0.0, **more: Any) -> ServiceMetrics:
    pods = {ready_pod().uid: (SAMPLE,)} if source else {}
    more = {"collected": True, **more}
    return ServiceMetrics(collection=9, pods=pods, source=source, since=since, **more)


def metrics_condition(before: Snapshot, now: Any = NOW) -> tuple[str, str, str]:
    return condition(decide(before, now), "MetricsAvailable")


def test_condition_says_where_metrics_come_from() -> None:
    before = snapshot(None, ready_pod())
    assert metrics_condition(snapshot())[:2] == ("Unknown", "NoPods")
    seen = replace(before, metrics=measured(Source.PROMETHEUS))
    assert metrics_condition(seen)[:2] == ("True", "Prometheus")
    trouble = "Prometheus answers HTTP 503"
    asked = measured(Source.DIRECT_SCRAPE, trouble=trouble, expected=True)
    found = metrics_condition(replace(before, metrics=asked))
    assert found[:2] == ("True", "DirectScrape")
    assert trouble in found[2]
    assert metrics_condition(replace(before, metrics=measured(None)))[:2] == ("False", "NoMetrics")
    waiting_for_its_turn = replace(before, metrics=measured(None, unasked=True))
    assert metrics_condition(waiting_for_its_turn)[0] == "Unknown"
    missing = replace(before, metrics=measured(None, missing="headway_steps_total"))
    found = metrics_condition(missing)
    assert found[:2] == ("False", "MetricsMissing")
    assert "headway_steps_total" in found[2]


def test_one_late_scrape_is_no_news() -> None:
    seen = settled(replace(snapshot(None, ready_pod()), metrics=measured(Source.PROMETHEUS)))
    late = replace(seen, metrics=measured(Source.DIRECT_SCRAPE, NOW.unix, expected=True))
    assert metrics_condition(late, later(10))[1] == "Prometheus"
    assert not decide(late, later(10)).status_changed
    lasting = decide(late, later(20))
    assert condition(lasting, "MetricsAvailable")[1] == "DirectScrape"
    assert [(each.warning, each.reason) for each in lasting.notices] == [(True, "DirectScrape")]
    back = replace(carried_out(late, lasting), metrics=measured(Source.PROMETHEUS, later(30).unix))
    told = decide(back, later(60)).notices
    assert [(each.warning, each.reason) for each in told] == [(False, "Prometheus")]


def test_that_prometheus_does_not_know_a_pod_yet_is_no_outage() -> None:
    asleep = settled(snapshot())
    woken = replace(asleep, pods=(ready_pod(),))
    early = measured(Source.DIRECT_SCRAPE, NOW.unix, expected=True)
    first = decide(replace(woken, metrics=early), later(5))
    assert condition(first, "MetricsAvailable")[0] == "Unknown"
    assert "DirectScrape" not in [each.reason for each in first.notices]
    before = carried_out(replace(woken, metrics=early), first)
    known = decide(replace(before, metrics=measured(Source.PROMETHEUS, later(9).unix)), later(10))
    assert condition(known, "MetricsAvailable")[:2] == ("True", "Prometheus")
    outage = decide(before, later(15))
    assert (True, "DirectScrape") in [(each.warning, each.reason) for each in outage.notices]


def test_metrics_that_come_back_from_a_pod_itself_are_told_at_once() -> None:
    without = replace(snapshot(None, ready_pod()), metrics=measured(None))
    without = carried_out(without, decide(without, NOW))
    early = measured(Source.DIRECT_SCRAPE, NOW.unix, expected=True)
    assert metrics_condition(replace(without, metrics=early), later(5))[0] == "True"


def test_without_metrics_everything_is_held() -> None:
    before = replace(tuned(), metrics=measured(None))
    plan = decide(before, NOW)
    assert plan.tuning == before.tuning
    assert plan.changes == ()
