"""The engine processes of this pod, as their statistics files show them."""

from __future__ import annotations

from pathlib import Path

from headway_runtime.exchange.statistics_file import (
    EngineStatistics,
    StatisticsFileError,
    find_files,
    read,
)
from headway_runtime.scheduling.breaker import OPEN_SECONDS


def read_engines(
    run_dir: Path, records: int, *, with_classes: bool = False
) -> tuple[EngineStatistics, ...]:
    """Statistics of every engine process with up to ``records`` of its newest steps.

    A file that cannot be read is left out: its engine is starting, or of another release.
    """
    found = (_read(path, records, with_classes) for path in find_files(run_dir))
    return tuple(each for each in found if each is not None)


def _read(path: Path, records: int, with_classes: bool) -> EngineStatistics | None:  # noqa: FBT001
    try:
        return read(path, records, with_classes=with_classes)
    except (OSError, StatisticsFileError):
        return None


def breaker_is_open(engine: EngineStatistics, now_ns: int) -> bool:
    """Whether planning is paused; an idle engine's last step only knows about its own time."""
    latest = engine.latest
    if latest is None or not latest.breaker_open:
        return False
    return now_ns - latest.wall_time_ns < OPEN_SECONDS * 1e9
