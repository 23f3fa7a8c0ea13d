"""What a pod did in the last seconds, from the counters of its samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from headway_operator.observe.engine_metrics.sample import ClassSample, EngineSample, History

TICK_SECONDS = 5.0
"""What happened just now: since the tick before."""

WINDOW_SECONDS = 30.0
"""Pods tell TTFT and TPOT as of the last 15 to 30 s."""


@dataclass(frozen=True)
class Pace:
    """What counters say of a stretch of time; of several pods, their sum.

    Attributes:
        steps: engine steps.
        scheduled_tokens: tokens they processed.
        step_seconds: time they took.
        preemptions: running requests that lost their KV blocks.
    """

    steps: float = 0.0
    scheduled_tokens: float = 0.0
    step_seconds: float = 0.0
    preemptions: float = 0.0

    def __add__(self, other: Pace) -> Pace:
        return Pace(
            self.steps + other.steps,
            self.scheduled_tokens + other.scheduled_tokens,
            self.step_seconds + other.step_seconds,
            self.preemptions + other.preemptions,
        )

    @property
    def tokens_per_step(self) -> float:
        """Tokens of a step on average; 0 without steps."""
        return self.scheduled_tokens / self.steps if self.steps else 0.0

    @property
    def tokens_per_second(self) -> float:
        """Tokens in a second of steps; 0 without steps."""
        return self.scheduled_tokens / self.step_seconds if self.step_seconds else 0.0

    @property
    def seconds_per_step(self) -> float:
        """Seconds of a step on average; 0 without steps."""
        return self.step_seconds / self.steps if self.steps else 0.0


def pace(history: History, seconds: float) -> Pace:
    """What a pod did in the last so many seconds, as far back as its samples reach.

    Counters that went backwards belong to an engine that started anew: what was done between those
    two samples is not known and left out.
    """
    return total(_between(before, after) for before, after in _pairs(history, seconds))


def step_lengths(history: History, seconds: float) -> tuple[float, ...]:
    """Mean length of steps, in seconds, between each two samples of that time."""
    paces = (_between(before, after) for before, after in _pairs(history, seconds))
    return tuple(each.seconds_per_step for each in paces if each.step_seconds > 0)


def total(paces: Iterable[Pace]) -> Pace:
    """The sum of several."""
    return sum(paces, start=Pace())


def mean(values: Iterable[float]) -> float:
    """The mean of at least one value."""
    found = tuple(values)
    return sum(found) / len(found)


def within(history: History, seconds: float) -> History:
    """Samples of the last so many seconds, at least the newest."""
    return tuple(sample for sample in history if sample.at > history[-1].at - seconds)


def ended(history: History, seconds: float, class_name: str) -> float:
    """Requests of a class that ended in the last so many seconds."""
    return _counted(history, seconds, class_name, lambda sample: sample.requests_total)


def attained(history: History, seconds: float, class_name: str) -> float:
    """Those of them that met every objective."""
    return _counted(history, seconds, class_name, lambda sample: sample.attained_total)


def _counted(
    history: History, seconds: float, class_name: str, counter: Callable[[ClassSample], float]
) -> float:
    pairs = (
        (before.classes.get(class_name), after.classes.get(class_name))
        for before, after in _pairs(history, seconds)
    )
    return sum(
        max(0.0, counter(after) - counter(before)) for before, after in pairs if before and after
    )


def _pairs(history: History, seconds: float) -> Iterator[tuple[EngineSample, EngineSample]]:
    since = history[-1].at - seconds
    return ((before, after) for before, after in pairwise(history) if after.at > since)


def _between(before: EngineSample, after: EngineSample) -> Pace:
    counted = Pace(
        after.steps_total - before.steps_total,
        after.scheduled_tokens_total - before.scheduled_tokens_total,
        after.step_seconds_total - before.step_seconds_total,
        after.preemptions_total - before.preemptions_total,
    )
    least = min(counted.steps, counted.scheduled_tokens, counted.step_seconds, counted.preemptions)
    return counted if least >= 0 else Pace()
