"""How much work is offered to the pod's engines. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from headway_runtime.exchange.statistics_file import EngineStatistics
from headway_runtime.exchange.statistics_record import NOT_TOLD
from headway_runtime.scheduling.timing.forgetting import kept

FRESH_NS = 10 * 10**9
"""An engine that has work and has written nothing for so long is not believed: it stands still, or
is gone. One without work writes nothing, and is offered nothing."""

_PPM = 1e6


def token_load(engines: Sequence[EngineStatistics], now_ns: int) -> float | None:
    """Engine-seconds of work offered each second: mean over the engines that tell it, else None."""
    told = [_token_load(each, now_ns) for each in engines]
    return _mean([each for each in told if each is not None])


def with_refused(told: float | None, refused: float) -> float | None:
    """Work that engines are offered, with what was refused before it reached them.

    Refused work counts at most as much as the other: clients send again what was refused, and a
    router asks one engine after the other, so that one request is refused many times. Twice the
    work is as much as one decision on the number of pods goes by anyway.
    """
    return None if told is None else told + min(refused, told)


def step_overhead(engines: Sequence[EngineStatistics], now_ns: int) -> float | None:
    """Share of steps that passes whatever is done, likewise."""
    return _mean(
        [
            each.load.step_overhead_ppm / _PPM
            for each in engines
            if each.load.step_overhead_ppm != NOT_TOLD and _is_fresh(each, now_ns)
        ]
    )


def program_stretch(engines: Sequence[EngineStatistics]) -> float | None:
    """Mean time of programs over the time since their calls were first served, likewise."""
    told = [each.load.program_stretch_ppm for each in engines]
    return _mean([each / _PPM for each in told if each != NOT_TOLD])


def _token_load(engine: EngineStatistics, now_ns: int) -> float | None:
    if engine.load.token_load_ppm == NOT_TOLD:
        # It tells with its first step; until then nothing was offered to it.
        return None if engine.load.steps or not _is_idle(engine) else 0.0
    if not _is_fresh(engine, now_ns):
        return None
    return engine.load.token_load_ppm / _PPM * _remembered(engine, now_ns)


def _remembered(engine: EngineStatistics, now_ns: int) -> float:
    """Share that an engine which has nothing to do still remembers of what it told."""
    return kept((now_ns - engine.load.wall_time_ns) / 1e9) if _is_idle(engine) else 1.0


def _is_fresh(engine: EngineStatistics, now_ns: int) -> bool:
    return _is_idle(engine) or now_ns - engine.load.wall_time_ns <= FRESH_NS


def _is_idle(engine: EngineStatistics) -> bool:
    return not (engine.load.running or engine.load.waiting)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
