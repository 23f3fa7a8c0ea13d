"""Which services are looked at in a tick: all that have anything to do, the quiet ones in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headway_operator.observe.records import PodRecord, ServiceKey

QUIET_TICKS = 6
"""A quiet service is looked at in one tick of these. Whatever happens to it is an event and is
looked at at once; this is for what no event tells. A thousand of them each tick would cost the
operator a tenth of a core."""


class Rounds:
    """Remembers which services are quiet.

    Args:
        has_work: whether pods have requests, or metrics that are not what they were.
    """

    def __init__(self, has_work: Callable[[Iterable[PodRecord]], bool]) -> None:
        self._has_work = has_work
        self._quiet: set[ServiceKey] = set()
        self._tick = 0

    def looked_at(self, key: ServiceKey, *, is_quiet: bool) -> None:
        """Note what a look came to."""
        if is_quiet:
            self._quiet.add(key)
        else:
            self._quiet.discard(key)

    def due(
        self, services: Iterable[ServiceKey], pods: Callable[[ServiceKey], Iterable[PodRecord]]
    ) -> list[ServiceKey]:
        """The services to look at in this tick."""
        self._tick += 1
        known = list(services)
        self._quiet.intersection_update(known)
        return [
            key
            for place, key in enumerate(known)
            if key not in self._quiet
            or place % QUIET_TICKS == self._tick % QUIET_TICKS
            or self._has_work(pods(key))
        ]
