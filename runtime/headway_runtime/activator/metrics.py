"""The activator's metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_BUCKETS = (1, 3, 10, 30, 60, 120, 300, 600, 1800)


@dataclass(frozen=True)
class Now:
    """How things are at the moment.

    Attributes:
        held: requests that wait for an engine.
        held_bytes: bytes of their bodies.
        passing: requests that are with an engine.
        start_seconds: how long an engine is thought to take to start.
    """

    held: int
    held_bytes: int
    passing: int
    start_seconds: float


@dataclass(frozen=True)
class _NowCollector(Collector):
    look: Callable[[], Now] = field(repr=False)

    def collect(self) -> Iterator[Metric]:
        now = self.look()
        for name, text, value in (
            ("held_requests", "Requests that wait for an engine.", now.held),
            ("held_bytes", "Bytes of the bodies of requests that wait.", now.held_bytes),
            ("passing_requests", "Requests that are with an engine.", now.passing),
            ("start_seconds", "Time until an engine takes requests, last time.", now.start_seconds),
        ):
            yield GaugeMetricFamily(f"headway_activator_{name}", text, value=value)


class Metrics:
    """Counts what becomes of requests.

    Args:
        look: tells how things are.
    """

    def __init__(self, look: Callable[[], Now]) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_NowCollector(look))
        self._requests = Counter(
            "headway_activator_requests",
            "Requests that came to the activator, by what became of them.",
            ["outcome"],
            registry=self.registry,
        )
        self._held_seconds = Histogram(
            "headway_activator_held_seconds",
            "Time that requests waited for an engine that took them.",
            buckets=_BUCKETS,
            registry=self.registry,
        )

    def ended(self, outcome: str) -> None:
        """Count a request."""
        self._requests.labels(outcome=outcome).inc()

    def waited(self, seconds: float) -> None:
        """Note how long a request was held until an engine took it."""
        self._held_seconds.observe(seconds)
