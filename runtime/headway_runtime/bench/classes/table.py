"""Results of several runs by scenario and arm. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from headway_runtime.bench.results import Result


class Table:
    """Figures by scenario and arm; runs that repeat others are left out.

    Args:
        results: see :func:`headway_runtime.bench.measure.result_of`.
    """

    def __init__(self, results: Sequence[Result]) -> None:
        self._runs: dict[tuple[str, str], dict[int, Result]] = defaultdict(dict)
        for each in results:
            if not each["is_control"]:
                self._runs[each["scenario"], each["arm"]][int(each["seed"])] = each
        self.scenarios = sorted({each["scenario"] for each in results})

    def arms(self, scenario: str) -> list[str]:
        """Arms that were measured in a scenario."""
        return sorted(arm for name, arm in self._runs if name == scenario)

    def runs(self, scenario: str, arm: str) -> list[Result]:
        """Runs of an arm, by seed."""
        found = self._runs.get((scenario, arm), {})
        return [found[seed] for seed in sorted(found)]

    def seeds(self, scenario: str, arm: str) -> set[int]:
        """Seeds that an arm was run with."""
        return set(self._runs.get((scenario, arm), {}))

    def mean(
        self, scenario: str, arm: str, *path: str, seeds: set[int] | None = None
    ) -> float | None:
        """Mean over seeds of the figure that these names lead to; None where none has it."""
        values = [
            value
            for run in self.runs(scenario, arm)
            if seeds is None or int(run["seed"]) in seeds
            if (value := at(run, path)) is not None
        ]
        return fmean(values) if values else None

    def ratio(self, above: tuple[str, str], below: tuple[str, str], *path: str) -> float | None:
        """One figure of two arms, each in its scenario, over the seeds that both were run with."""
        seeds = self.seeds(*above) & self.seeds(*below)
        upper = self.mean(*above, *path, seeds=seeds)
        lower = self.mean(*below, *path, seeds=seeds)
        return upper / lower if upper is not None and lower else None


def at(figures: Any, path: Sequence[str]) -> float | None:
    """The figure that these names lead to; None where there is none."""
    for name in path:
        figures = figures.get(name) if isinstance(figures, dict) else None
    return None if figures is None else float(figures)
