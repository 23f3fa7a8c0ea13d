"""An order of admission in force in a simulated engine."""

from __future__ import annotations

from collections.abc import Sequence

from headway_runtime.bench.rivals.admission_rule import AdmissionRule, Newcomer
from headway_runtime.executors.simulated.engine import SimulatedEngine
from headway_runtime.executors.simulated.pipeline import Launched
from headway_runtime.executors.simulated.request import Request


class RuleInForce:
    """Tells a rule what the engine does, and the engine what the rule says.

    Args:
        rule: the rule.
        engine: the engine, which from now on admits by it.
    """

    def __init__(self, rule: AdmissionRule, engine: SimulatedEngine) -> None:
        self._rule = rule
        self._engine = engine
        self._requests: dict[str, Request] = {}
        self._preempted: dict[str, Request] = {}
        engine.order = self._first

    def received(self, request: Request) -> None:
        """A request was let in."""
        arrival = request.arrival
        self._requests[request.request_id] = request
        self._rule.arrived(
            Newcomer(request.request_id, arrival.origin, arrival.prompt_tokens, arrival.at)
        )

    def stepped(self, launched: Launched) -> None:
        """A step was launched."""
        step = launched.step
        for request, _ in step.chunks:
            self._preempted.pop(request.request_id, None)
        for request in step.preempted:
            self._preempted[request.request_id] = request
        self._rule.stepped(
            [(request.request_id, tokens) for request, tokens in step.chunks],
            launched.scheduled_s,
        )

    def ended(self, request: Request) -> None:
        """A request has ended."""
        self._requests.pop(request.request_id, None)
        self._preempted.pop(request.request_id, None)
        self._rule.ended(request.request_id)

    def _first(self) -> Sequence[Request]:
        first = [self._requests[name] for name in self._rule.first(self._engine.now_s)]
        # What lost its KV blocks goes first as ever, the one that lost them last in front.
        return [*reversed(self._preempted.values()), *first]
