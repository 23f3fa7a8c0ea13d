"""Results of several sessions as one table: a row for each model, scenario and arm. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from headway_runtime.bench.arms import HEADWAY, Kind, parse
from headway_runtime.bench.results import Result


@dataclass(frozen=True)
class Row:
    """One arm in one scenario, its runs with all seeds put together.

    Attributes:
        arm: name of the arm.
        runs: its runs, controls left out.
    """

    arm: str
    runs: tuple[Result, ...]

    @property
    def seeds(self) -> list[int]:
        """Seeds it was run with."""
        return sorted({int(run["seed"]) for run in self.runs})

    def mean(self, *path: str) -> float | None:
        """Mean over the runs of a figure of their summaries; None where none has it.

        Args:
            path: names that lead to it, as in ``mean("classes", "batch", "latency_s", "p50")``.
        """
        values = [value for run in self.runs if (value := _at(run["summary"], path)) is not None]
        return fmean(values) if values else None

    def total(self, *path: str) -> int:
        """Sum over the runs of a figure of their summaries."""
        return sum(int(_at(run["summary"], path) or 0) for run in self.runs)

    @property
    def backlog_grows(self) -> bool:
        """Whether requests pile up in any of the runs."""
        return any(run["summary"]["backlog_grows"] for run in self.runs)

    @property
    def is_stock(self) -> bool:
        """Whether it is a static setting of stock vLLM."""
        return parse(self.arm).kind is Kind.STOCK

    @property
    def is_static_batch(self) -> bool:
        """Whether it is request-level static batching."""
        return parse(self.arm).kind is Kind.STATIC_BATCH

    def with_seeds(self, seeds: Iterable[int]) -> Row:
        """The runs with these seeds alone."""
        wanted = set(seeds)
        return Row(self.arm, tuple(run for run in self.runs if run["seed"] in wanted))


@dataclass(frozen=True)
class Cell:
    """One scenario on one model.

    Attributes:
        shape: shape of the model.
        scenario: name of the scenario.
        family: scenarios of one family differ in their load alone.
        load: share of the capacity bound, None offline.
        rows: one for each arm, best attainment first.
        controls: runs that repeat another one.
    """

    shape: str
    scenario: str
    family: str
    load: float | None
    rows: tuple[Row, ...]
    controls: tuple[Result, ...]

    @property
    def headway(self) -> Row | None:
        """Our row."""
        return next((row for row in self.rows if row.arm == HEADWAY.name), None)

    def matched(self) -> list[tuple[Row, Row]]:
        """Our row beside each other one, both with the seeds they have in common."""
        ours = self.headway
        pairs = []
        for row in self.rows:
            if ours is not None and row is not ours:
                common = set(ours.seeds) & set(row.seeds)
                if common:
                    pairs.append((ours.with_seeds(common), row.with_seeds(common)))
        return pairs


def cells(results: Sequence[Result]) -> list[Cell]:
    """All scenarios on all models, in order of their names."""
    grouped: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for result in results:
        grouped[result["shape"], result["scenario"]].append(result)
    return [_cell(grouped[key]) for key in sorted(grouped)]


def _cell(results: list[Result]) -> Cell:
    runs: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        if not result["is_control"]:
            runs[result["arm"]].append(result)
    rows = [Row(arm, tuple(of_arm)) for arm, of_arm in runs.items()]
    first = results[0]
    return Cell(
        shape=first["shape"],
        scenario=first["scenario"],
        family=first["family"],
        load=first["load"],
        rows=tuple(sorted(rows, key=lambda row: (-(row.mean("attainment") or 0), row.arm))),
        controls=tuple(result for result in results if result["is_control"]),
    )


def _at(figures: Any, path: Sequence[str]) -> float | None:
    for name in path:
        figures = figures.get(name) if isinstance(figures, dict) else None
    return None if figures is None else float(figures)
