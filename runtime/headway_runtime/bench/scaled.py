"""Workloads for an engine that is slower than those the scenarios were made for. Pure.

Targets of the mixes are for one H200 and an 8B model. On a processor they would all be missed,
whatever schedules, and a window would hold a handful of requests, too few for a percentile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headway_runtime.bench.workload import Request, Workload
from headway_runtime.policy import TrafficClass


@dataclass(frozen=True)
class Scale:
    """What a workload is scaled by.

    Attributes:
        slower: objectives, deadlines and pauses are so many times as long.
        shorter: prompts and outputs are so many times shorter; as many more come, so that tokens/s
            are those of the scenario.
    """

    slower: float = 1.0
    shorter: float = 1.0


TRUE_SCALE = Scale()


def scaled(workload: Workload, scale: Scale) -> Workload:
    """A workload with other objectives and lengths, and the same arrivals.

    Args:
        workload: what a scenario made; its rate is meant for the shorter lengths already.
        scale: the factors.

    Raises:
        ValueError: prompts share prefixes, whose length is fixed, and are to be shorter.
    """
    if scale == TRUE_SCALE:
        return workload
    if scale.shorter != 1 and any(each.prefix_blocks for each in workload.requests):
        raise ValueError("prompts that share prefixes cannot be made shorter")
    return replace(
        workload,
        classes=_classes(workload.classes, scale.slower),
        requests=tuple(_request(each, scale) for each in workload.requests),
    )


def _classes(classes: Sequence[TrafficClass], slower: float) -> tuple[TrafficClass, ...]:
    return tuple(
        replace(
            each,
            ttft_ms=_times(each.ttft_ms, slower),
            tpot_ms=_times(each.tpot_ms, slower),
            deadline_s=_times(each.deadline_s, slower),
        )
        for each in classes
    )


def _times(target: int | None, slower: float) -> int | None:
    return None if target is None else max(1, round(target * slower))


def _request(request: Request, scale: Scale) -> Request:
    call = request.call
    if call is not None and call.deadline_s is not None:
        call = call._replace(deadline_s=call.deadline_s * scale.slower)
    return replace(
        request,
        prompt_tokens=max(1, round(request.prompt_tokens / scale.shorter)),
        output_tokens=max(1, round(request.output_tokens / scale.shorter)),
        delay_s=request.delay_s * scale.slower,
        call=call,
    )
