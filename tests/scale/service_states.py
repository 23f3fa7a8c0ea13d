"""How far the services are, as their conditions tell."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.e2e.service import condition_of
from tests.scale.watching import Event

READY = "Ready"
POLICY_APPLIED = "PolicyApplied"
CONDITIONS = (READY, POLICY_APPLIED)


@dataclass
class ServiceStates:
    """Conditions of all services, and when all of them held.

    Attributes:
        expected: how many services there will be.
        complete_s: by condition, when it first held for all services at once.
    """

    expected: int
    complete_s: dict[str, float] = field(default_factory=dict)
    _holding: dict[str, set[str]] = field(
        default_factory=lambda: {kind: set[str]() for kind in CONDITIONS}
    )

    def take(self, event: Event, at_s: float) -> None:
        """Take in a change of a service."""
        for kind, holding in self._holding.items():
            condition = condition_of(event.body, kind)
            current = condition.get("observedGeneration") == event.body["metadata"]["generation"]
            if not event.deleted and current and condition["status"] == "True":
                holding.add(event.name)
            else:
                holding.discard(event.name)
            if len(holding) == self.expected:
                self.complete_s.setdefault(kind, at_s)

    def count(self, kind: str) -> int:
        """Services for which a condition holds now."""
        return len(self._holding[kind])

    def share(self, kind: str) -> float:
        """The same as a share of all."""
        return self.count(kind) / self.expected

    @property
    def done(self) -> bool:
        """Whether every condition has held for all services."""
        return len(self.complete_s) == len(CONDITIONS)
