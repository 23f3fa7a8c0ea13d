"""Whether the pod is being emptied, remembered over a restart of the sidecar."""

from __future__ import annotations

from pathlib import Path

from headway_runtime.exchange import statistics_file

MARK_FILE = "draining"


class Draining:
    """A mark in the shared directory that is good for the engine container it was set for.

    The engine container also runs its ``preStop`` when only it is restarted, by its liveness probe
    for instance; the engine that comes up next is not draining. One that is told to stop while it
    loads goes on until it is killed: it must not get requests once it has loaded. Its processes do
    not tell the two apart, as they may start after the mark; their container does.
    """

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._mark = run_dir / MARK_FILE

    def start(self, container: str) -> None:
        """Mark the pod.

        Args:
            container: start of the engine container's first process, in clock ticks since boot.

        Raises:
            ValueError: it is none.
            OSError: the shared directory cannot be written.
        """
        self._mark.write_text(str(int(container)), encoding="ascii")

    def __bool__(self) -> bool:
        try:
            marked = int(self._mark.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return False
        # What an earlier container left behind does not end it.
        return all(each <= marked for each in self._containers())

    def _containers(self) -> list[int]:
        """When the containers started whose engine processes have told of themselves."""
        told = (_container(path) for path in statistics_file.find_files(self._run_dir))
        return [each for each in told if each is not None]


def _container(path: Path) -> int | None:
    try:
        return statistics_file.read(path, records=0).header.container_started_ticks
    except (OSError, statistics_file.StatisticsFileError):
        return None
