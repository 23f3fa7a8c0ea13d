"""How busy the pod's engines are. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from headway_runtime.exchange.statistics_file import EngineStatistics

WINDOW_NS = 10 * 10**9
"""The busy share of steps is over this time."""

IDLE_AFTER_NS = 2 * 10**9
"""An engine that has ended no step for this long is idle, whatever was sampled before."""

_PPM = 1e6


def utilisation(engines: Sequence[EngineStatistics], now_ns: int) -> float:
    """Mean over the engines of how busy their GPUs are; without NVML, how busy their steps are."""
    shares = [_utilisation(each, now_ns) for each in engines]
    return sum(shares) / len(shares) if shares else 0.0


def memory_bandwidth(engines: Sequence[EngineStatistics], now_ns: int) -> float | None:
    """Mean over the engines whose GPUs are sampled; None where none is."""
    shares = [
        0.0 if _is_idle(each, now_ns) else each.load.memory_bandwidth_ppm / _PPM
        for each in engines
        if each.load.sampled_ns
    ]
    return sum(shares) / len(shares) if shares else None


def _utilisation(engine: EngineStatistics, now_ns: int) -> float:
    if _is_idle(engine, now_ns):
        return 0.0
    if engine.load.sampled_ns:
        return engine.load.gpu_utilisation_ppm / _PPM
    return _busy_share(engine, now_ns)


def _is_idle(engine: EngineStatistics, now_ns: int) -> bool:
    latest = engine.latest
    return latest is None or now_ns - latest.wall_time_ns > IDLE_AFTER_NS


def _busy_share(engine: EngineStatistics, now_ns: int) -> float:
    """Share of the window in which a step was under way, as far back as the records reach."""
    records = engine.records
    oldest_ns = now_ns - WINDOW_NS
    if engine.load.steps > len(records):
        oldest_ns = max(oldest_ns, records[0].wall_time_ns - records[0].step_ns)
    busy_ns = sum(
        max(0, each.wall_time_ns - max(oldest_ns, each.wall_time_ns - each.step_ns))
        for each in records
    )
    return min(1.0, busy_ns / max(1, now_ns - oldest_ns))
