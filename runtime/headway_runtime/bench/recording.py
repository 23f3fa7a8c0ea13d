"""What became of the requests that a simulated engine was offered, and of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway_runtime.bench.closed_loop import ClosedLoop
from headway_runtime.bench.outcome import Ending, Outcome
from headway_runtime.bench.rule_in_force import RuleInForce
from headway_runtime.bench.step_log import COLUMNS
from headway_runtime.bench.workload import Request as Offered
from headway_runtime.executors.simulated.engine import SimulatedEngine
from headway_runtime.executors.simulated.pipeline import Launched
from headway_runtime.executors.simulated.request import Arrival, Request
from headway_runtime.scheduling.admission.refusal import Refusal


@dataclass(frozen=True)
class Sent(Arrival):
    """An arrival that knows which request of the workload it is.

    Attributes:
        index: of the request.
    """

    index: int = 0


class Recording:
    """Times of all tokens and steps; sends requests whose predecessors have ended.

    See :class:`executors.simulated.recorder.Recorder`.

    Args:
        engine: the engine that is offered the requests.
        requests: all of the workload.
        cached_tokens: of each one's prompt, those that are in the prefix cache.
        rule: is told as well, where it decides the order of admission.
    """

    def __init__(
        self,
        engine: SimulatedEngine,
        requests: Sequence[Offered],
        cached_tokens: Sequence[int],
        rule: RuleInForce | None = None,
    ) -> None:
        self._engine = engine
        self._requests = requests
        self._cached_tokens = cached_tokens
        self._rule = rule
        self._loop = ClosedLoop(requests)
        self._sent_s: dict[int, float] = {}
        self._tokens: list[list[float]] = [[] for _ in requests]
        self._refusals: dict[int, Refusal] = {}
        self._rows: list[list[float]] = []
        self._busy_s = 0.0

    def begin(self) -> None:
        """Send all that waits for nothing."""
        for index, each in enumerate(self._requests):
            if not each.after:
                self._send(index, each.arrival_s)

    def received(self, request: Request) -> None:
        """A request was let in."""
        if self._rule is not None:
            self._rule.received(request)

    def refused(self, arrival: Arrival, number: int, refusal: Refusal) -> None:  # noqa: ARG002 - the index tells which it is
        """A request was not let in."""
        self._refusals[_index(arrival)] = refusal

    def launched(self, launched: Launched, waiting: int) -> None:
        """A step was launched; so many requests wait."""
        if self._rule is not None:
            self._rule.stepped(launched)
        shape, now = launched.step.shape, self._engine.occupancy
        self._busy_s += launched.ended_s - launched.began_s
        step = {
            "schedule_s": launched.scheduled_s,
            "scheduled_s": launched.scheduled_s,
            "launched_s": launched.launched_s,
            "update_s": launched.ended_s,
            "prefill_tokens": shape.prefill_tokens,
            "decodes": shape.decodes,
            "decode_context": shape.decode_context,
            "attention_pairs": shape.attention_pairs,
            "tokens": shape.tokens,
            "running": now.running,
            "waiting": waiting,
            "kv_usage": now.kv_usage,
            "token_budget": now.token_budget,
            "preemptions": len(launched.step.preempted),
        }
        self._rows.append([float(step.get(name, 0)) for name in COLUMNS])

    def token(self, request: Request, now_s: float) -> None:
        """A request got a token."""
        index = _index(request.arrival)
        self._tokens[index].append(now_s)
        if request.is_finished:
            if self._rule is not None:
                self._rule.ended(request)
            for follower, at_s in self._loop.completed(index, now_s):
                self._send(follower, at_s)

    @property
    def rows(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """Rows of a step log."""
        return np.array(self._rows).reshape(-1, len(COLUMNS))

    @property
    def busy_percent(self) -> float | None:
        """Share of the time in which the GPU worked, waits for launches counted as work."""
        return round(100 * self._busy_s / self._engine.now_s, 1) if self._rows else None

    def outcomes(self) -> list[Outcome]:
        """What became of each."""
        return [self._outcome(index, each) for index, each in enumerate(self._requests)]

    def _send(self, index: int, at_s: float) -> None:
        each = self._requests[index]
        self._sent_s[index] = at_s
        self._engine.send(
            Sent(
                at_s,
                each.class_name,
                each.prompt_tokens,
                each.output_tokens,
                self._cached_tokens[index],
                each.origin,
                index=index,
            )
        )

    def _outcome(self, index: int, request: Offered) -> Outcome:
        token_s = self._tokens[index]
        # An unsent one has no times: it is taken to be sent when the run ended.
        sent_s = self._sent_s.get(index, self._engine.now_s)
        ending, ended_s = Ending.TIMED_OUT, self._engine.now_s
        if len(token_s) == request.output_tokens:
            ending, ended_s = Ending.COMPLETE, token_s[-1]
        elif index in self._refusals:
            # The step that was under way when it came is not what a client waits for.
            ending, ended_s = Ending.REFUSED, sent_s
        elif index not in self._sent_s:
            ending = Ending.UNSENT
        return Outcome(
            class_name=request.class_name,
            prompt_tokens=request.prompt_tokens,
            output_tokens=request.output_tokens,
            planned_s=sent_s,
            sent_s=sent_s,
            ending=ending,
            ended_s=ended_s,
            token_s=tuple(token_s),
            detail=self._refusals[index].reason.value if index in self._refusals else "",
            tenant=request.tenant,
            program=request.program,
        )


def _index(arrival: Arrival) -> int:
    if not isinstance(arrival, Sent):
        raise TypeError("an arrival that nobody offered")
    return arrival.index
