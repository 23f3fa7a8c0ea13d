"""What a step log tells about how long steps take. Pure."""

from __future__ import annotations

from statistics import median

import numpy as np
import numpy.typing as npt

from headway_runtime.bench.step_log import Rows, column
from headway_runtime.scheduling.engine_clock import EngineClock
from headway_runtime.scheduling.step_shape import StepShape
from headway_runtime.scheduling.step_time_model import StepTimeModel

SEEN_MARGIN_S = 0.0005
"""An output that was looked at sooner after a launch was there before."""

_LEAST_PREDICTIONS = 20


def gpu_seconds(rows: Rows) -> npt.NDArray[np.float64]:
    """Time of each step on the GPU, in seconds, as far as it was seen; nan where it was not.

    An engine that schedules ahead looks at a step's output only when the next one is launched, so
    that a log tells the end of a step only where the engine waited for it. A step begins when the
    one before ends. One that found the GPU idle is left out: how long the engine took to begin
    with it is not known.
    """
    scheduled, launched = column(rows, "schedule_s"), column(rows, "launched_s")
    finished = column(rows, "update_s")
    seen = finished > launched + SEEN_MARGIN_S
    seen[:-1] &= finished[:-1] > launched[1:] + SEEN_MARGIN_S
    took = np.full(len(rows), np.nan)
    behind = seen[1:] & seen[:-1] & (scheduled[1:] < finished[:-1])
    took[1:][behind] = (finished[1:] - finished[:-1])[behind]
    return took


def model_error_median(rows: Rows, graph_tokens: int) -> float | None:
    """Median error of the planner's step-time model, as a share of what was measured.

    The log is played to the planner's own clock, which begins with its prior and learns as it does
    in an engine: each prediction is made before the step it is about. None with few steps.

    Args:
        rows: a step log.
        graph_tokens: largest step that runs as a CUDA graph.
    """
    clock = EngineClock(StepTimeModel(), graph_tokens)
    errors: list[float] = []
    for at_s, event, index in _events(rows):
        if event == "decided":
            clock.decided(at_s, _shape(rows, index))
        elif event == "launched":
            clock.launched(at_s)
        else:
            errors += _checked(clock, at_s)
    return round(median(errors), 4) if len(errors) >= _LEAST_PREDICTIONS else None


def _checked(clock: EngineClock, at_s: float) -> list[float]:
    """The error of the step whose output is looked at, if its end was seen."""
    clock.error_ratio = None
    clock.looked_at(at_s)
    return [] if clock.error_ratio is None else [clock.error_ratio]


def _events(rows: Rows) -> list[tuple[float, str, int]]:
    moments = (("decided", "schedule_s"), ("launched", "launched_s"), ("looked at", "update_s"))
    return sorted(
        (float(at_s), event, index)
        for event, name in moments
        for index, at_s in enumerate(column(rows, name))
        if at_s > 0
    )


def _shape(rows: Rows, index: int) -> StepShape:
    prefill, decodes, context, pairs = (
        float(column(rows, name)[index])
        for name in ("prefill_tokens", "decodes", "decode_context", "attention_pairs")
    )
    return StepShape(int(prefill), int(decodes), int(context), pairs)
