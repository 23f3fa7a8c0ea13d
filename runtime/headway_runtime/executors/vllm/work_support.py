"""In which engines the lengths of steps can be told, so that plans can count on them."""

from __future__ import annotations

import time
from typing import Any

from headway_runtime.executors.vllm.work_watch import WorkWatch
from headway_runtime.scheduling.timing.engine_clock import EngineClock
from headway_runtime.scheduling.timing.step_time_model import StepTimeModel
from headway_runtime.scheduling.timing.token_load import TokenLoad


def work_watch(scheduler: Any) -> WorkWatch | None:
    """What follows this engine's work; None where the policy alone must limit its steps.

    With draft tokens a step gives a request an unknown number of tokens.
    """
    if getattr(scheduler, "num_spec_tokens", 0):
        return None
    clock = EngineClock(
        StepTimeModel(),
        graph_tokens=_graph_tokens(scheduler),
        schedules_ahead=_schedules_ahead(scheduler),
    )
    return WorkWatch(clock, TokenLoad(time.monotonic()))


def _graph_tokens(scheduler: Any) -> int:
    """Largest step that runs as a CUDA graph; 0 where there are none."""
    compilation = getattr(scheduler.vllm_config, "compilation_config", None)
    mode = getattr(getattr(compilation, "cudagraph_mode", None), "name", "NONE")
    if mode == "NONE":
        return 0
    return int(getattr(compilation, "max_cudagraph_capture_size", None) or 0)


def _schedules_ahead(scheduler: Any) -> bool:
    """Whether steps overlap: with asynchronous scheduling, or over the stages of a pipeline."""
    config = scheduler.vllm_config
    in_stages = getattr(config.parallel_config, "pipeline_parallel_size", 1) > 1
    return in_stages or bool(getattr(config.scheduler_config, "async_scheduling", False))
