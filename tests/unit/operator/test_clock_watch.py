"""A clock that is set while the operator runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headway_operator.decide import decide
from headway_operator.memory.idleness import Idleness
from headway_operator.memory.memory import Memory
from headway_operator.memory.refusal import Refusal
from headway_operator.memory.scaling import LoadPoint, Needed, Scaling
from headway_operator.memory.shortage import Shortage, ShortageWatch, Timing
from headway_operator.observe.activators import ActivatorReport
from headway_operator.observe.clock_watch import TOLERATED_SECONDS, ClockWatch
from tests.unit.operator.samples import NOW, later, service, settled, snapshot


class Clocks:
    """One that is set and one that is not."""

    def __init__(self) -> None:
        self.steady = 50.0
        self.wall = 1000.0
        self.watch = ClockWatch(lambda: self.wall, lambda: self.steady)

    def goes_by(self, seconds: float, *, by: float = 0.0) -> float:
        self.steady += seconds
        self.wall += seconds + by
        return self.watch.jumped()


def test_time_that_goes_by_is_no_jump_however_long() -> None:
    clocks = Clocks()
    assert [clocks.goes_by(seconds) for seconds in (0.0, 5.0, 3600.0)] == [0.0] * 3


@pytest.mark.parametrize("by", [3600.0, -3600.0, TOLERATED_SECONDS + 1])
def test_a_clock_that_is_set_is_noticed_once(by: float) -> None:
    clocks = Clocks()
    assert clocks.goes_by(5.0, by=by) == by
    assert clocks.goes_by(5.0) == 0.0


def test_a_clock_that_is_put_right_little_by_little_is_not_set() -> None:
    clocks = Clocks()
    assert [clocks.goes_by(5.0, by=0.5) for _ in range(100)] == [0.0] * 100


@pytest.mark.parametrize("by", [3600.0, -3600.0])
def test_what_was_timed_by_it_begins_anew_and_nothing_else_is_lost(by: float) -> None:
    memory, epoch, now = Memory(), 7, NOW.unix
    known = memory.of(service())
    load, needed = LoadPoint(now, 2.0), Needed(now, 3)
    known.scaling = Scaling(
        3, now - 900, epoch, (load,), (needed,), 2, 1, 1.5, now - 900, 12, claimed=4
    )
    known.idleness = Idleness(epoch, since=now - 500, handed_over=now - 5)
    known.shortages = ShortageWatch(epoch, {Shortage.ROOM: Timing(short_since=now - 500)})
    known.refusals = {"Service": Refusal("Service", "a", 422, (), 1, now + 60)}
    known.published = settled(snapshot()).published
    assert known.published is not None
    memory.activators.told("a", ActivatorReport(0, 0, now - 40))
    memory.clock_was_set(by, now + by)
    assert known.scaling == Scaling(
        3, now + by, epoch, correction=1.5, removed_at=now + by, collection=12, claimed=4
    )
    assert (known.idleness, known.shortages) == (None, None)
    assert known.refusals["Service"].retry_at == now + by
    assert known.published.since == now + by
    assert memory.activators.of(["a"]) == {"a": ActivatorReport(0, 0, now + by - 40)}


def test_a_policy_that_pods_hold_is_no_other_one_by_another_clock() -> None:
    before = settled(snapshot())
    memory = Memory()
    known = memory.of(before.service)
    known.published = before.published
    memory.clock_was_set(3600.0, later(3600).unix)
    after: Any = decide(replace(before, published=known.published), later(3600)).published
    assert before.published is not None
    assert after.policy == before.published.policy
