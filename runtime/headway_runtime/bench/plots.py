"""Pictures of the report, where matplotlib is installed."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from headway_runtime.bench.aggregate import Cell, Row
from headway_runtime.bench.analysis import ITL_BOUNDS_MS
from headway_runtime.bench.goodput import ATTAINMENT_GOAL, STEADY_FAMILY

MOST_ARMS = 7
"""Arms in one picture; more cannot be told apart. Ours is always among them."""

Figure = Any


def draw(cells: Sequence[Cell], folder: Path) -> list[Path]:
    """Draw all pictures; the files that were written, none without matplotlib.

    Raises:
        OSError: the folder cannot be written.
    """
    try:
        matplotlib = importlib.import_module("matplotlib")
    except ModuleNotFoundError:
        return []
    matplotlib.use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for shape in dict.fromkeys(cell.shape for cell in cells):
        steady = [each for each in cells if each.shape == shape and each.family == STEADY_FAMILY]
        if steady:
            paths.append(_goodput(pyplot, steady, folder / f"goodput-{shape}.png"))
    for cell in cells:
        if cell.rows:
            path = folder / f"{cell.scenario}-{cell.shape}.png"
            paths.append(_distributions(pyplot, cell, path))
    return paths


def _goodput(pyplot: Any, steady: Sequence[Cell], path: Path) -> Path:
    """Attainment over load, one line an arm."""
    figure, axes = pyplot.subplots(figsize=(6, 4))
    arms = dict.fromkeys(row.arm for cell in steady for row in shown(cell))
    for arm in arms:
        points = sorted(
            (cell.load, row.mean("attainment"))
            for cell in steady
            for row in cell.rows
            if row.arm == arm and cell.load is not None
        )
        axes.plot(*zip(*points, strict=True), marker="o", label=arm)
    axes.axhline(ATTAINMENT_GOAL, color="grey", linestyle=":")
    _label(axes, "load, share of the capacity bound", "requests inside their objectives")
    axes.legend(fontsize=7)
    return _save(pyplot, figure, path)


def _distributions(pyplot: Any, cell: Cell, path: Path) -> Path:
    """TTFT, inter-token time, tokens that were late, longest stall, budget over time."""
    figure, ((ttft, itl, budget), (late, stall, _)) = pyplot.subplots(2, 3, figsize=(13, 7))
    rows = shown(cell)
    for row in rows:
        values = sorted(v for run in row.runs for v in run["requests"]["ttft_ms"] if v is not None)
        shares = [(index + 1) / len(values) for index in range(len(values))]
        (line,) = ttft.plot(values, shares, label=row.arm)
        colour = line.get_color()
        itl.step(ITL_BOUNDS_MS, _cumulated(row), where="post", color=colour)
        curve = (row.runs[0].get("steps") or {}).get("curve")
        if curve:
            budget.plot(curve["time_s"], curve["token_budget"], color=colour, linewidth=0.8)
    ttft.set_xscale("log")
    itl.set_xscale("log")
    _label(ttft, "TTFT, ms", "share of requests")
    _label(itl, "inter-token time, ms", "share of tokens")
    _label(budget, "time, s", "token budget (first seed)")
    names = [row.arm for row in rows]
    late.barh(names, [100 * (row.mean("token_deadline_miss_share") or 0) for row in rows])
    _label(late, "tokens after their deadline, %", "")
    stall.barh(names, [row.mean("longest_stall_ms") or 0 for row in rows])
    _label(stall, "longest stall, ms", "")
    figure.axes[-1].axis("off")
    figure.legend(*ttft.get_legend_handles_labels(), loc="lower right", fontsize=8)
    figure.suptitle(f"{cell.scenario}, {cell.shape}")
    return _save(pyplot, figure, path)


def shown(cell: Cell) -> list[Row]:
    """Our row and the best others."""
    others = [row for row in cell.rows if row is not cell.headway][: MOST_ARMS - 1]
    return [*([cell.headway] if cell.headway is not None else []), *others]


def _cumulated(row: Row) -> list[float]:
    bins = [sum(column) for column in zip(*_histograms(row), strict=True)]
    return [count / (sum(bins) or 1) for count in accumulate(bins[: len(ITL_BOUNDS_MS)])]


def _histograms(row: Row) -> list[list[int]]:
    return [run["summary"]["itl_histogram"] for run in row.runs]


def _label(axes: Any, x: str, y: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def _save(pyplot: Any, figure: Figure, path: Path) -> Path:
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
    return path
