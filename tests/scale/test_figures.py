"""What the benchmarks' figures are made with."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.scale import histogram
from tests.scale.audit_tail import Mark
from tests.scale.results import percentile
from tests.scale.service_states import POLICY_APPLIED, READY, ServiceStates
from tests.scale.watching import Event

INF = math.inf


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([3, 1, 2], 0.5, 2),
        (list(range(1, 101)), 0.99, 99),
        ([5], 0.99, 5),
        ([1, 2, 3, INF], 0.75, 3),
        ([1, 2, 3, INF], 0.99, None),
        ([], 0.5, None),
    ],
)
def test_what_never_came_is_later_than_everything_that_came(
    values: list[float], share: float, expected: float | None
) -> None:
    assert percentile(values, share) == expected


@pytest.mark.parametrize(
    ("counts", "share", "expected"),
    [
        ({0.1: 50, 1.0: 100, INF: 100}, 0.5, 0.1),
        ({0.1: 50, 1.0: 100, INF: 100}, 0.75, 0.55),
        ({0.1: 0, 1.0: 100, INF: 100}, 0.5, 0.55),
        ({0.1: 10, 1.0: 20, INF: 100}, 0.99, 1.0),
        ({0.1: 0, INF: 0}, 0.99, None),
        ({}, 0.99, None),
    ],
)
def test_a_quantile_is_interpolated_in_its_bucket(
    counts: dict[float, float], share: float, expected: float | None
) -> None:
    assert histogram.quantile(counts, share) == pytest.approx(expected)


def test_only_buckets_of_the_asked_series_count() -> None:
    metrics = {
        "x_seconds_bucket{le=0.5,outcome=done}": 3.0,
        "x_seconds_bucket{le=+Inf,outcome=done}": 4.0,
        "x_seconds_bucket{le=0.5,outcome=error}": 9.0,
        "x_seconds_count{outcome=done}": 4.0,
    }
    assert histogram.buckets_of(metrics, "x_seconds", "outcome=done") == {0.5: 3.0, INF: 4.0}


def event(resource: str, name: str = "web") -> str:
    document = {
        "stage": "ResponseComplete",
        "verb": "patch",
        "user": {"username": "operator"},
        "objectRef": {"resource": resource, "name": name},
    }
    return json.dumps(document) + "\n"


def append(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)


def test_writes_are_counted_across_a_rotation_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    append(log, event("services"))
    mark = Mark.now(log)
    append(log, event("configmaps") + event("leases"))
    log.rename(tmp_path / "audit-2026-01-01T00-00-00.000.log")
    append(log, event("deployments"))
    assert mark.writes("operator") == ["patch configmaps web", "patch deployments web"]
    assert mark.lease_writes("operator") == 1


def test_a_log_that_is_gone_is_an_error_and_not_no_writes(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    append(log, event("services"))
    mark = Mark.now(log)
    log.rename(tmp_path / "elsewhere")
    append(log, event("deployments"))
    with pytest.raises(RuntimeError, match="more was written than is kept"):
        mark.writes("operator")


def service(name: str, *holding: str, generation: int = 1, observed: int = 1) -> Event:
    conditions: list[dict[str, Any]] = [
        {"type": kind, "status": "True", "observedGeneration": observed} for kind in holding
    ]
    metadata = {"name": name, "generation": generation}
    return Event(deleted=False, body={"metadata": metadata, "status": {"conditions": conditions}})


def test_services_are_complete_only_while_all_are_at_once() -> None:
    states = ServiceStates(expected=2)
    states.take(service("a", READY), 1.0)
    states.take(service("a"), 2.0)
    states.take(service("b", READY), 3.0)
    assert states.complete_s == {}
    states.take(service("a", READY, POLICY_APPLIED), 4.0)
    assert states.complete_s == {READY: 4.0}
    states.take(service("b", READY, POLICY_APPLIED), 5.0)
    assert states.complete_s == {READY: 4.0, POLICY_APPLIED: 5.0}
    assert states.done


def test_a_condition_of_an_older_spec_does_not_count() -> None:
    states = ServiceStates(expected=1)
    states.take(service("a", READY, generation=2, observed=1), 1.0)
    assert states.share(READY) == 0
