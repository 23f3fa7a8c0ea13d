"""The report beside ``gpu.json``: what was run, on what, and how every arm did. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from headway_runtime.bench.aggregate import Cell, Row
from headway_runtime.bench.arms import HEADWAY
from headway_runtime.bench.conditions import conditions
from headway_runtime.bench.headline import single_static, tokens_ratio, tuned
from headway_runtime.bench.results import Result

_NOTHING = "-"

_COLUMNS: tuple[tuple[str, tuple[str, ...], int], ...] = (
    ("TTFT p50 ms", ("ttft_ms", "p50"), 0),
    ("TTFT p99 ms", ("ttft_ms", "p99"), 0),
    ("TPOT p99 ms", ("tpot_ms", "p99"), 1),
    ("ITL p99 ms", ("itl_ms", "p99"), 1),
    ("longest stall ms", ("longest_stall_ms",), 0),
    ("late tokens", ("token_deadline_miss_share",), 3),
    ("tokens together", ("together_share",), 3),
    ("latency p50 s", ("latency_s", "p50"), 2),
    ("batch p50 s", ("classes", "batch", "latency_s", "p50"), 2),
    ("tokens/s", ("tokens_per_s",), 0),
    ("in the middle", ("middle_tokens_per_s",), 0),
    ("in the window", ("window_tokens_per_s",), 0),
    ("output/s", ("output_tokens_per_s",), 0),
    ("drain s", ("drain_s",), 1),
)


def report(
    cells: Sequence[Cell],
    results: Sequence[Result],
    figures: Mapping[str, Any],
    plots: Sequence[str],
) -> str:
    """The report as Markdown.

    Args:
        cells: see :func:`aggregate.cells`.
        results: the runs themselves.
        figures: see :func:`headline.headline`.
        plots: paths of pictures, relative to the report.
    """
    parts = [
        "# Benchmark on a GPU",
        conditions(results),
        "## In short",
        _table(("figure", "value"), [(name, _text(value)) for name, value in figures.items()]),
        (
            "Gaps are percentage points of attainment, ratios are ours over theirs; `-` was not "
            "measured."
        ),
        "## Where we lose",
        _losses(cells),
        "## Single static settings",
        _single(cells),
        "## Noise",
        _noise(cells),
        *(f"![{plot}]({plot})" for plot in plots),
        "## Every scenario",
        (
            "Attainment counts refused, failed and given-up requests as missed. Percentiles are "
            "means over seeds of each run's percentile, over all classes unless named; a given-up "
            "request has waited as long as it was waited for."
        ),
        *(part for cell in cells for part in _scenario(cell)),
    ]
    return "\n\n".join(parts) + "\n"


def _losses(cells: Iterable[Cell]) -> str:
    rows = []
    for cell in cells:
        pair, ratio = tuned(cell), tokens_ratio(cell)
        if pair is None or ratio is None or cell.load is None:
            continue
        ours, best = pair
        gap = 100 * ((ours.mean("attainment") or 0) - (best.mean("attainment") or 0))
        if gap < 0 or ratio < 1:
            rows.append((cell.shape, cell.scenario, best.arm, f"{gap:+.1f}", f"{ratio:.3f}"))
    header = ("model", "scenario", "best stock setting", "attainment gap", "tokens/s ratio")
    return _table(header, rows) if rows else "In no scenario that was measured."


def _single(cells: Sequence[Cell]) -> str:
    compared = [cell for cell in cells if cell.load is not None and tuned(cell)]
    best = single_static(compared)
    if best is None:
        return "No stock setting was measured in every scenario."
    return f"Best over all {len(compared)} scenarios: `{best}`."


def _noise(cells: Iterable[Cell]) -> str:
    """How far runs that repeat others are from them."""
    rows = []
    for cell in cells:
        for control in cell.controls:
            first = next((row for row in cell.rows if row.arm == control["arm"]), None)
            row = first.with_seeds([control["seed"]]) if first else None
            if row is not None and row.runs:
                again = Row(row.arm, (control,))
                rows.append((cell.shape, cell.scenario, control["seed"], *_differences(row, again)))
    header = ("model", "scenario", "seed", "arm", "attainment", "tokens/s")
    return _table(header, rows) if rows else "No run was repeated."


def _differences(first: Row, again: Row) -> tuple[str, str, str]:
    attainment = 100 * ((again.mean("attainment") or 0) - (first.mean("attainment") or 0))
    before, after = first.mean("tokens_per_s"), again.mean("tokens_per_s")
    tokens = f"{100 * (after / before - 1):+.1f} %" if before and after else _NOTHING
    return first.arm, f"{attainment:+.1f}", tokens


def _scenario(cell: Cell) -> list[str]:
    classes = sorted({name for row in cell.rows for run in row.runs for name in _classes(run)})
    header = (
        *("arm", "seeds", "attainment %", *(f"{name} %" for name in classes)),
        *("refused", "failed", "given up"),
        *(title for title, _, _ in _COLUMNS),
        *("GPU busy %", "schedule() ms", "plug-in %", "preemptions"),
    )
    load = "all at the start" if cell.load is None else f"load {cell.load:g} of the bound"
    return [
        f"### {cell.scenario}, {cell.shape} ({load})",
        _table(header, [_row(row, classes) for row in cell.rows]),
    ]


def _row(row: Row, classes: Sequence[str]) -> tuple[str, ...]:
    def percent(*path: str) -> str:
        value = row.mean(*path)
        return _NOTHING if value is None else f"{100 * value:.1f}"

    steps = [run["steps"] for run in row.runs if run.get("steps")]
    plans = [run["plans"] for run in row.runs if run["plans"]]
    busy = [run["gpu_busy_percent"] for run in row.runs if run.get("gpu_busy_percent") is not None]
    return (
        f"**{row.arm}**" if row.arm == HEADWAY.name else row.arm,
        ", ".join(map(str, row.seeds)),
        percent("attainment"),
        *(percent("classes", name, "attainment") for name in classes),
        *(str(row.total("endings", name)) for name in ("refused", "failed", "timed-out")),
        *(_number(row.mean(*path), digits) for _, path, digits in _COLUMNS),
        _number(fmean(busy) if busy else None, 0),
        _number(fmean(each["schedule_ms_mean"] for each in steps) if steps else None, 2),
        _number(100 * fmean(each["plugin_share"] for each in plans) if plans else None, 2),
        str(sum(each["preemptions"] for each in steps)) if steps else _NOTHING,
    )


def _classes(run: Result) -> list[str]:
    return list(run["summary"]["classes"])


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)


def _number(value: float | None, digits: int) -> str:
    return _NOTHING if value is None else f"{value:.{digits}f}"


def _text(value: object) -> str:
    return _NOTHING if value is None else str(value)
