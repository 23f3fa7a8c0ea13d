"""Who is let into a simulated engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headway_runtime.bench.arms import Arm, Kind
from headway_runtime.door.ledger import Ledger
from headway_runtime.exchange.let_in_file import LetInRequest
from headway_runtime.executors.simulated.engine import Door, SimulatedEngine
from headway_runtime.executors.simulated.request import Arrival
from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.admission.refusal import Board, Refusal, RefusalReason, refusal

BOARD_PERIOD_S = 0.05
"""What lets requests in looks at the engine's board so often."""


def door_of(arm: Arm, engine: SimulatedEngine, classes: Sequence[TrafficClass]) -> Door | None:
    """The door of an arm; None lets everybody in."""
    if arm.queued is not None:
        return _queue_limit(engine, arm.queued)
    if arm.kind in (Kind.HEADWAY, Kind.ABLATION):
        return BoardDoor(engine.board, classes).refusal
    return None


def _queue_limit(engine: SimulatedEngine, most: int) -> Door:
    """The limit that vLLM has itself: of all open requests, running ones too."""

    def refused(_: Arrival, __: float) -> Refusal | None:
        now = engine.occupancy
        if now.running + now.waiting < most:
            return None
        return Refusal(RefusalReason.QUEUE_FULL, 1)

    return refused


class BoardDoor:
    """Lets requests in by a board that is a little old, and by what it let in since.

    Args:
        board: makes the engine's board; None while there is none.
        classes: of the policy.
    """

    def __init__(self, board: Callable[[], Board | None], classes: Sequence[TrafficClass]) -> None:
        self._make = board
        self._classes = {each.name: each for each in classes}
        self._ttft_ms = {each.name: each.ttft_ms for each in classes}
        self._board: Board | None = None
        self._renewed_s = float("-inf")
        self._ledger = Ledger()

    def refusal(self, arrival: Arrival, now_s: float) -> Refusal | None:
        """Why a request is not let in; None lets it in."""
        if now_s >= self._renewed_s + BOARD_PERIOD_S:
            self._board, self._renewed_s = self._make(), now_s
            # What comes here is in the engine at once.
            self._ledger = Ledger()
        promised = self._classes.get(arrival.class_name)
        if promised is None:
            return None
        found = refusal(
            self._board,
            promised,
            arrival.origin.tenant,
            arrival.prompt_tokens,
            self._ledger.let_in(promised.name, self._ttft_ms),
        )
        if found is None:
            self._ledger.enter(LetInRequest(promised.name, arrival.prompt_tokens, now_s))
        return found
