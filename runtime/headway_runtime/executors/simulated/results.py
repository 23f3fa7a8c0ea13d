"""What came of a simulation: per request, per step, and in figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from headway_runtime.executors.simulated.measurements import attained
from headway_runtime.executors.simulated.pipeline import Launched
from headway_runtime.executors.simulated.request import Request
from headway_runtime.policy import TrafficClass


@dataclass(frozen=True)
class StepRecord:
    """One step.

    Attributes:
        scheduled_at_s: when it was decided.
        launched_at_s: when its launch was over.
        began_at_s: when the GPU began with it.
        finished_at_s: when the GPU was done with it.
        prefill_tokens: prompt tokens in it.
        decodes: requests that decode in it.
        decode_context: tokens before those.
        attention_pairs: of its prompt chunks.
        waiting: requests that waited.
    """

    scheduled_at_s: float
    launched_at_s: float
    began_at_s: float
    finished_at_s: float
    prefill_tokens: int
    decodes: int
    decode_context: int
    attention_pairs: float
    waiting: int

    @property
    def total_tokens(self) -> int:
        """All tokens in it."""
        return self.prefill_tokens + self.decodes


@dataclass
class _Timeline:
    request: Request
    last_s: float
    gaps: list[float] = field(default_factory=list)


class Results:
    """Records a simulation.

    Attributes:
        steps: every step.
    """

    def __init__(self) -> None:
        self.steps: list[StepRecord] = []
        self._timelines: dict[str, _Timeline] = {}

    def launched(self, launched: Launched, waiting: int) -> None:
        """A step was launched; so many requests wait."""
        shape = launched.step.shape
        self.steps.append(
            StepRecord(
                launched.scheduled_s,
                launched.launched_s,
                launched.began_s,
                launched.ended_s,
                shape.prefill_tokens,
                shape.decodes,
                shape.decode_context,
                shape.attention_pairs,
                waiting,
            )
        )

    def token(self, request: Request, now_s: float) -> None:
        """A request got a token."""
        timeline = self._timelines.get(request.request_id)
        if timeline is None:
            self._timelines[request.request_id] = _Timeline(request, now_s)
        else:
            timeline.gaps.append(now_s - timeline.last_s)
            timeline.last_s = now_s

    def figures(
        self, classes: Sequence[TrafficClass], sent: Mapping[str, int], preemptions: int
    ) -> Figures:
        """The figures of it.

        Args:
            classes: what was promised.
            sent: requests sent, by class name; those that did not end count as missed.
            preemptions: running requests that lost their KV blocks.
        """
        by_class: dict[str, list[_Timeline]] = defaultdict(list)
        for timeline in self._timelines.values():
            by_class[timeline.request.arrival.class_name].append(timeline)
        ended_s = max(each.last_s for each in self._timelines.values())
        tokens = sum(
            each.request.total for each in self._timelines.values() if each.request.is_finished
        )
        return Figures(
            classes={
                each.name: _class_figures(each, by_class[each.name], sent.get(each.name, 0))
                for each in classes
            },
            tokens_per_s=tokens / ended_s,
            drain_s=ended_s,
            preemptions=preemptions,
            steps=len(self.steps),
            gpu_busy=sum(each.finished_at_s - each.began_at_s for each in self.steps) / ended_s,
        )


@dataclass(frozen=True)
class ClassFigures:
    """One class.

    Attributes:
        sent: requests sent.
        ended: requests that ended.
        attainment: share of those sent that met all objectives; 1 where none was sent.
        ttft_s: 50th and 99th percentile of times to first token.
        tpot_s: the same of the mean time per token after the first, by request.
        itl_s: the same of single gaps between tokens.
        e2e_s: the same of times to the last token.
    """

    sent: int
    ended: int
    attainment: float
    ttft_s: tuple[float, float]
    tpot_s: tuple[float, float]
    itl_s: tuple[float, float]
    e2e_s: tuple[float, float]


@dataclass(frozen=True)
class Figures:
    """A simulation in figures.

    Attributes:
        classes: by name.
        tokens_per_s: prompt and output tokens of ended requests over the time until the last ended.
        drain_s: that time.
        preemptions: running requests that lost their KV blocks.
        steps: engine steps.
        gpu_busy: share of the time that the GPU worked, waits for launches counted as work.
    """

    classes: Mapping[str, ClassFigures]
    tokens_per_s: float
    drain_s: float
    preemptions: int
    steps: int
    gpu_busy: float


def _class_figures(
    promised: TrafficClass, timelines: Sequence[_Timeline], sent: int
) -> ClassFigures:
    ended = [each for each in timelines if each.request.is_finished]
    kept = sum(attained(each.request, promised, each.last_s) for each in ended)
    firsts = [
        each.request.first_token_at - each.request.arrival.at
        for each in timelines
        if each.request.first_token_at is not None
    ]
    return ClassFigures(
        sent=sent,
        ended=len(ended),
        attainment=kept / sent if sent else 1.0,
        ttft_s=_percentiles(firsts),
        tpot_s=_percentiles([float(np.mean(each.gaps)) for each in ended if each.gaps]),
        itl_s=_percentiles([gap for each in timelines for gap in each.gaps]),
        e2e_s=_percentiles([each.last_s - each.request.arrival.at for each in ended]),
    )


def _percentiles(values: Sequence[float]) -> tuple[float, float]:
    if not values:
        return (float("nan"), float("nan"))
    median, high = np.percentile(values, (50, 99))
    return float(median), float(high)
