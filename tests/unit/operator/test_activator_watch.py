"""What the operator hears of activators."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from headway_operator.observe import activator_watch
from headway_operator.observe.activator_watch import ActivatorWatch
from headway_operator.observe.activators import (
    SILENCES_TOLERATED,
    ActivatorReport,
    Activators,
    parse_report,
)
from headway_operator.observe.records import ServiceKey
from tests.unit.activator.serving import Activator, activator, becomes
from tests.unit.operator.samples import pod

DEMO = ServiceKey("team", "demo")
POD = replace(pod("demo-activator-1", template="activator", ready=True), ip="127.0.0.1")


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"held": "1", "passing": 0},
        {"held": -1, "passing": 0},
        {"held": 1, "passing": 10**12},
        {"held": 1, "passing": 0, "secondsSinceAsked": "soon"},
        {"held": 1, "passing": 0, "secondsSinceAsked": -1.0},
        {"held": 1, "passing": 0, "secondsSinceAsked": float("nan")},
    ],
)
def test_what_no_activator_tells_is_nothing(answer: dict[str, Any]) -> None:
    assert parse_report(answer, 1000.0) is None


def test_times_are_told_by_our_own_clock() -> None:
    answer = {"held": 1, "passing": 2, "secondsSinceAsked": 30}
    assert parse_report(answer, 1000.0) == ActivatorReport(1, 2, 970.0)
    assert parse_report({"held": 0, "passing": 0}, 1000.0) == ActivatorReport(0, 0, None)


@pytest.fixture
async def front() -> AsyncIterator[Activator]:
    async with activator() as made:
        yield made


async def test_news_come_at_once_and_silence_is_news_too(
    front: Activator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activator_watch, "PAUSE_SECONDS", 0.01)
    activators, news = Activators(), list[ServiceKey]()
    port = front.control.port
    assert port is not None
    watch = ActivatorWatch(activators, news.append, lambda: 1000.0, port)

    def told() -> ActivatorReport | None:
        return activators.of([POD.uid]).get(POD.uid)

    watch.watch([(DEMO, POD)])
    await becomes(lambda: told() == ActivatorReport(0, 0, None))
    assert news == [DEMO]
    await asyncio.sleep(0.05)
    with front.front.in_flight.holding():
        front.front.in_flight.asked()
        await becomes(lambda: (each := told()) is not None and each.held == 1)
        watch.watch([(DEMO, POD)])
    await becomes(lambda: (each := told()) is not None and each.held == 0)
    await front.control.close()
    await becomes(lambda: told() is None)
    assert len(news) == 4
    await becomes(lambda: activators.silent([POD.uid]) == {POD.uid})
    await becomes(lambda: len(news) == 5)
    watch.watch([])
    await watch.close()


async def test_a_pod_that_is_gone_is_asked_no_more(front: Activator) -> None:
    activators = Activators()
    port = front.control.port
    assert port is not None
    watch = ActivatorWatch(activators, lambda _key: None, lambda: 1000.0, port)
    watch.watch([(DEMO, POD)])
    await becomes(lambda: bool(activators.of([POD.uid])))
    watch.watch([(DEMO, replace(POD, deleting=True))])
    assert activators.of([POD.uid]) == {}
    await watch.close()


async def test_a_pod_with_a_new_address_is_asked_there(
    front: Activator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activator_watch, "PAUSE_SECONDS", 0.01)
    activators = Activators()
    port = front.control.port
    assert port is not None
    watch = ActivatorWatch(activators, lambda _key: None, lambda: 1000.0, port)
    watch.watch([(DEMO, replace(POD, ip="127.0.0.9"))])  # nobody listens there
    await becomes(lambda: activators.silent([POD.uid]) == {POD.uid})
    watch.watch([(DEMO, POD)])
    await becomes(lambda: bool(activators.of([POD.uid])))
    assert activators.silent([POD.uid]) == frozenset()
    watch.watch([(DEMO, replace(POD, ip=None))])
    assert activators.of([POD.uid]) == {}
    await watch.close()


def test_a_request_came_as_long_ago_whatever_the_clock_says() -> None:
    activators = Activators()
    activators.told("a", ActivatorReport(1, 0, 5000.0))
    activators.told("b", ActivatorReport(0, 0, None))
    activators.shift(-3600.0)
    assert activators.of(["a", "b"]) == {
        "a": ActivatorReport(1, 0, 1400.0),
        "b": ActivatorReport(0, 0, None),
    }


def test_silence_is_out_of_reach_when_it_lasts_and_an_answer_ends_it() -> None:
    activators = Activators()
    assert [activators.silence("a") for _ in range(2 * SILENCES_TOLERATED)].count(True) == 1
    assert activators.silent(["a", "b"]) == {"a"}
    assert activators.told("a", ActivatorReport(0, 0, None))
    assert not activators.told("a", ActivatorReport(0, 0, None))
    assert activators.silent(["a"]) == frozenset()
