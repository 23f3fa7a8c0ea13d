"""For how long something has been short, or there has been enough of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from headway_operator.decide.degradation.reading import Reading, State
from headway_operator.memory.shortage import Shortage, ShortageWatch, Timing


def timed(watch: ShortageWatch, readings: Mapping[Shortage, Reading], now: float) -> ShortageWatch:
    """The watch after another look; ``now`` is Unix time in seconds."""
    timings = {
        shortage: _after(watch.of(shortage), reading.state, now)
        for shortage, reading in readings.items()
    }
    return replace(watch, timings=timings)


def afresh(watch: ShortageWatch, shortages: Iterable[Shortage]) -> ShortageWatch:
    """The watch after a step was taken or left: what that does is seen from now on."""
    dropped = frozenset(shortages)
    timings = {each: timing for each, timing in watch.timings.items() if each not in dropped}
    return replace(watch, timings=timings)


def _after(before: Timing, state: State, now: float) -> Timing:
    if state is State.SHORT:
        return Timing(short_since=now if before.short_since is None else before.short_since)
    if state is State.CLEAR:
        return Timing(clear_since=now if before.clear_since is None else before.clear_since)
    return before if state is State.UNKNOWN else Timing()
