"""What a step log tells about how long steps take. Pure.

A log is played to the planner's own clock, so that there is one opinion of which ends were seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import numpy as np
import numpy.typing as npt

from headway_runtime.bench.step_log import Rows, column
from headway_runtime.scheduling.timing.engine_clock import EngineClock
from headway_runtime.scheduling.timing.step_shape import StepShape
from headway_runtime.scheduling.timing.step_time_model import StepTimeModel

_LEAST_PREDICTIONS = 20


class _Listener(StepTimeModel):
    """A model that tells what it is taught."""

    def __init__(self) -> None:
        super().__init__()
        self.heard_s = 0.0

    def learn(self, shape: StepShape, seconds: float) -> None:
        self.heard_s = seconds
        super().learn(shape, seconds)


def gpu_seconds(rows: Rows, graph_tokens: int) -> npt.NDArray[np.float64]:
    """Time of each step on the GPU, in seconds, as far as it was seen; nan where it was not.

    An engine that schedules ahead looks at a step's output only when the next one is launched, so
    that a log tells the end of a step only where the engine waited for it. A step begins when the
    one before ends, whose end must have been seen too: the clock would take a predicted one.

    Args:
        rows: a step log.
        graph_tokens: largest step that runs as a CUDA graph.
    """
    took = np.full(len(rows), np.nan)
    for index, seconds, _ in _timed(rows, graph_tokens):
        took[index] = seconds
    is_begin_seen = np.concatenate([[False], took[:-1] > 0])[: len(rows)]
    return np.where(is_begin_seen, took, np.nan)


def model_error_median(rows: Rows, graph_tokens: int) -> float | None:
    """Median error of the planner's step-time model, as a share of what was measured.

    The model begins with its prior and learns as it does in an engine: each prediction is made
    before the step it is about. None with few steps.

    Args:
        rows: a step log.
        graph_tokens: largest step that runs as a CUDA graph.
    """
    errors = [error for _, _, error in _timed(rows, graph_tokens)]
    return round(median(errors), 4) if len(errors) >= _LEAST_PREDICTIONS else None


def _timed(rows: Rows, graph_tokens: int) -> Iterator[tuple[int, float, float]]:
    """Steps that the clock could time: index, seconds, error of the prediction as a share."""
    model = _Listener()
    overlap = _overlap(rows)
    clock = EngineClock(model, graph_tokens, schedules_ahead=overlap)
    for at_s, event, index in _events(rows, overlap=overlap):
        if event == "decided":
            clock.decided(at_s, _shape(rows, index))
        elif event == "launched":
            clock.launched(at_s)
        else:
            clock.error_ratio = None
            clock.looked_at(at_s)
            yield from _heard(clock, model, index)


def _overlap(rows: Rows) -> bool:
    """Whether any step was decided before the one before it was looked at."""
    return bool((column(rows, "schedule_s")[1:] < column(rows, "update_s")[:-1]).any())


def _heard(clock: EngineClock, model: _Listener, index: int) -> Iterator[tuple[int, float, float]]:
    if clock.error_ratio is not None:
        yield index, model.heard_s, clock.error_ratio


def _events(rows: Rows, *, overlap: bool) -> list[tuple[float, str, int]]:
    """What happened to which step, in order.

    Of what happens at one time, an engine that schedules ahead looks at a step after the launch of
    the next; another one does before it decides the next.
    """
    moments = (("decided", "schedule_s"), ("launched", "launched_s"), ("looked at", "update_s"))
    found = [
        (float(at_s), event, index)
        for event, name in moments
        for index, at_s in enumerate(column(rows, name))
        if at_s > 0
    ]
    return sorted(found) if overlap else sorted(found, key=lambda each: (each[0], each[2]))


def _shape(rows: Rows, index: int) -> StepShape:
    prefill, decodes, context, pairs = (
        float(column(rows, name)[index])
        for name in ("prefill_tokens", "decodes", "decode_context", "attention_pairs")
    )
    return StepShape(int(prefill), int(decodes), int(context), pairs)
