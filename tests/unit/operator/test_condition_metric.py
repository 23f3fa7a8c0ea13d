"""The metric of conditions: what it says, and that it ends with what it is about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client import REGISTRY

from headway_operator.act.lease import Leadership
from headway_operator.act.signing import KeyRing
from headway_operator.api import KIND, Condition, ConditionType
from headway_operator.environment import Environment
from headway_operator.metrics import CONDITION, show_conditions
from headway_operator.observe.records import ServiceKey
from headway_operator.operator import Operator
from tests.unit.observability.documents import documented_metrics
from tests.unit.operator.fakes import FakeCluster
from tests.unit.operator.samples import NOW, UID, service, spec
from tests.unit.operator.test_start import VARIABLES, write_key

DEMO = ServiceKey("team", "demo")


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    CONDITION.clear()
    yield
    CONDITION.clear()


@pytest.fixture
def led(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Operator:
    write_key(tmp_path)
    operator = Operator(Environment.read(VARIABLES), FakeCluster(), KeyRing(tmp_path))  # type: ignore[arg-type]
    monkeypatch.setattr(Leadership, "epoch", 7)
    monkeypatch.setattr(operator.relist, "_awaited", set())
    return operator


def shown(name: str = "demo") -> dict[str, float]:
    (metric,) = (each for each in REGISTRY.collect() if each.name == "headway_operator_condition")
    wanted = {"service_namespace": "team", "service": name}
    return {
        sample.labels["condition"]: sample.value
        for sample in metric.samples
        if wanted.items() <= sample.labels.items()
    }


def condition(kind: str, status: str) -> Condition:
    told = {"reason": "Why", "message": "", "lastTransitionTime": NOW.text, "observedGeneration": 1}
    return Condition.model_validate({"type": kind, "status": status, **told})


def test_true_false_and_unknown_are_numbers_and_what_is_gone_has_none() -> None:
    told = [("Ready", "True"), ("Stalled", "False"), ("PolicyApplied", "Unknown")]
    show_conditions("team", "demo", [condition(*each) for each in told])
    show_conditions("team", "other", [condition("Ready", "False")])
    assert shown() == {"Ready": 1, "Stalled": 0, "PolicyApplied": -1}
    show_conditions("team", "demo", [condition("Ready", "False")])
    assert shown() == {"Ready": 0}
    show_conditions("team", "demo", ())
    assert (shown(), shown("other")) == ({}, {"Ready": 0})


def test_the_document_lists_all_conditions_there_are() -> None:
    (*_, (label, values)) = documented_metrics()["headway_operator_condition"].values
    assert (label, set(values)) == ("condition", set(ConditionType))


async def test_a_look_at_a_service_shows_its_conditions_until_it_is_gone(led: Operator) -> None:
    led.cluster.services.put(DEMO, service(spec()))
    await led.work(DEMO)
    status = led.memory.services.latest(DEMO, service()).status
    assert shown().keys() == {each.type for each in status.conditions}
    assert shown()["Ready"] == 0
    led.cluster.services.drop(UID)
    led.gone(KIND, DEMO, UID)
    assert shown() == {}


async def test_one_that_is_being_deleted_alerts_nobody_however_long_that_takes(
    led: Operator,
) -> None:
    led.cluster.services.put(DEMO, service(spec()))
    await led.work(DEMO)
    assert shown() != {}
    # A finalizer of somebody else keeps it.
    going = replace(service(spec()), deleting=True, resource_version=10**6)
    led.cluster.services.put(DEMO, going)
    await led.work(DEMO)
    assert shown() == {}


async def test_one_that_goes_while_it_is_looked_at_leaves_nothing(
    led: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    led.cluster.services.put(DEMO, service(spec()))
    read = led.observer._reader.read_child

    async def meanwhile(slot: str, key: ServiceKey) -> object:
        led.cluster.services.drop(UID)
        led.gone(KIND, DEMO, UID)
        return await read(slot, key)

    monkeypatch.setattr(led.observer, "_reader", SimpleNamespace(read_child=meanwhile))
    await led.work(DEMO)
    assert shown() == {}
