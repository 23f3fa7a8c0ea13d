"""Who is let into a simulated engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway_runtime.bench import mixes
from headway_runtime.bench.arms import parse
from headway_runtime.bench.door import BOARD_PERIOD_S, BoardDoor
from headway_runtime.bench.outcome import Ending
from headway_runtime.bench.simulated import SimulatedGpu, simulate
from headway_runtime.bench.workload import Request, Workload
from headway_runtime.executors.simulated.request import Arrival
from headway_runtime.policy import TrafficClass, WhenUnmet
from headway_runtime.scheduling.admission.refusal import Board, ClassWait, RefusalReason

SHED = replace(mixes.INTERACTIVE, when_unmet=WhenUnmet.SHED)
FULL = TrafficClass("full", max_queued=2)
QUEUED = replace(mixes.INTERACTIVE, name="queued")
CLASSES = (SHED, FULL, QUEUED)


def board(**waits: ClassWait) -> Board:
    return Board(0.0, prompt_token_s=0.001, classes=waits)


def arrival(class_name: str, prompt_tokens: int = 100) -> Arrival:
    return Arrival(0.0, class_name, prompt_tokens, 10)


def test_what_was_let_in_counts_until_the_board_is_renewed() -> None:
    made: list[float] = []

    def make() -> Board:
        made.append(1.0)
        return board(interactive=ClassWait(0, 0.0, 0.0))

    door = BoardDoor(make, CLASSES)
    # A TTFT of 1 s and a millisecond for each token of 400: two fit.
    found = [door.refusal(arrival("interactive", 400), 1.0) for _ in range(3)]
    assert found[:2] == [None, None]
    assert found[2] is not None
    assert found[2].reason is RefusalReason.OBJECTIVE_UNMET
    assert len(made) == 1
    assert door.refusal(arrival("interactive", 400), 1.0 + BOARD_PERIOD_S) is None
    assert len(made) == 2


def test_a_full_queue_is_full_with_what_was_let_in_since() -> None:
    door = BoardDoor(lambda: board(full=ClassWait(waiting=1)), CLASSES)
    assert door.refusal(arrival("full"), 0.0) is None
    found = door.refusal(arrival("full"), 0.0)
    assert found is not None
    assert found.reason is RefusalReason.QUEUE_FULL


@pytest.mark.parametrize("class_name", ["queued", "unknown", ""])
def test_who_is_to_wait_is_let_in(class_name: str) -> None:
    door = BoardDoor(lambda: board(queued=ClassWait(9, 99.0, 99.0)), CLASSES)
    assert door.refusal(arrival(class_name), 0.0) is None


def test_without_a_board_everybody_is_let_in() -> None:
    door = BoardDoor(lambda: None, CLASSES)
    assert door.refusal(arrival("interactive", 100_000), 0.0) is None


def burst(requests: int) -> Workload:
    sent = tuple(Request(0.01 * n, SHED.name, 900, 60, n) for n in range(requests))
    return Workload((SHED,), sent, 1.0)


def endings(arm: str) -> dict[Ending, int]:
    outcomes = simulate(SimulatedGpu(), parse(arm), burst(150), 1, 120.0).outcomes
    return {ending: sum(each.ending is ending for each in outcomes) for ending in Ending}


def test_vllms_own_limit_refuses_whoever_comes_when_so_many_are_open() -> None:
    found = endings("stock-queued-40")
    assert found[Ending.COMPLETE] < 150
    assert found[Ending.COMPLETE] + found[Ending.REFUSED] == 150
    assert endings("stock-queued-150")[Ending.REFUSED] == 0
    assert endings("stock-512-fcfs")[Ending.REFUSED] == 0


def test_a_refusal_is_told_with_its_reason_and_takes_no_time() -> None:
    outcomes = simulate(SimulatedGpu(), parse("stock-queued-40"), burst(150), 1, 120.0).outcomes
    refused = [each for each in outcomes if each.ending is Ending.REFUSED]
    assert {each.detail for each in refused} == {"QueueFull"}
    assert {each.latency_s for each in refused} == {0.0}


def test_headway_refuses_what_it_could_not_serve_in_time() -> None:
    outcomes = simulate(SimulatedGpu(), parse("headway"), burst(150), 1, 120.0).outcomes
    assert any(each.ending is Ending.REFUSED for each in outcomes)
    assert any(each.ending is Ending.COMPLETE for each in outcomes)
