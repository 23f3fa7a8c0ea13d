"""Whether the pod is being emptied, remembered over a restart of the sidecar."""

from __future__ import annotations

from pathlib import Path

from headway_runtime.exchange import statistics_file

MARK_FILE = "draining"


class Draining:
    """A mark in the shared directory that is good for the engine processes it was set for.

    The engine container also runs its ``preStop`` when only it is restarted, by its liveness probe
    for instance; the engine that comes up next is not draining.
    """

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._mark = run_dir / MARK_FILE

    def start(self) -> None:
        """Mark the pod.

        Raises:
            OSError: the shared directory cannot be written.
        """
        self._mark.write_text(self._engines(), encoding="ascii")

    def __bool__(self) -> bool:
        try:
            marked_for = self._mark.read_text(encoding="ascii")
        except OSError:
            return False
        return marked_for == self._engines()

    def _engines(self) -> str:
        """Identity of the engine processes: their files are new ones after a restart."""
        return " ".join(_identity(path) for path in statistics_file.find_files(self._run_dir))


def _identity(path: Path) -> str:
    try:
        header = statistics_file.read(path, records=0).header
    except (OSError, statistics_file.StatisticsFileError):
        return f"{path.name}:-"
    return f"{path.name}:{header.pid}:{header.process_started_ticks}"
