"""The few figures that promises are held against. Pure; None where nothing was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, median
from typing import Any

from headway_runtime.bench.aggregate import Cell, Row
from headway_runtime.bench.arms import HEADWAY
from headway_runtime.bench.goodput import by_shape, goodput, goodput_ratio
from headway_runtime.bench.results import Result

SATURATION = "burst-140"
DEFAULT_STOCK = "stock-8192-fcfs"
AHEAD_ATTAINMENT = 0.10
AHEAD_TOKENS = 1.10
SAME_ATTAINMENT = 0.005
"""Attainments that differ by less are taken for equal."""

_DIGITS = 6


def headline(cells: Sequence[Cell], results: Sequence[Result]) -> dict[str, Any]:
    """The figures, by name.

    - ``scenarios``: scenarios (on one model each) in which we and a stock setting were measured.
    - ``worst_attainment_gap_vs_tuned``: our attainment less that of the best stock setting for the
      scenario, in percentage points, in the scenario where this is lowest.
    - ``worst_tokens_ratio_vs_tuned``: our tokens/s over those of the best setting, likewise. Best
      is the highest attainment, and of those that share it the most tokens/s.
    - ``share_ahead_of_single_static``: share of scenarios in which we are 10 points of attainment
      or, at no lower attainment, 10 % of tokens/s ahead of the one stock setting that is best over
      all of them.
    - ``goodput_of_bound``: the highest load, as a share of the capacity bound, at which 95 % of
      requests attain in steady state and no backlog grows; 0 if that holds at none.
    - ``offline_throughput_ratio``: tokens/s over stock vLLM's, without objectives.
    - ``static_throughput_ratio``, ``static_latency_ratio`` (median), ``static_goodput_ratio``:
      against static batching, at saturation and in steady state, each at the size that does best
      in it. Where static batching attains 95 % at no load, its goodput is taken to be the lowest
      load, and ``static_goodput_ratio_is_lower_bound`` is true.
    - ``model_error_median``: median over runs of the step-time model's relative error.

    Of several models the one with the worst figure counts.
    """
    compared = [cell for cell in cells if cell.load is not None and _stock(cell)]
    saturated = [cell for cell in cells if cell.scenario == SATURATION]
    models = by_shape(cells)
    goodputs = [goodput_ratio(of_model) for of_model in models]
    known = [each for each in goodputs if each is not None]
    return {
        "scenarios": len(compared),
        "worst_attainment_gap_vs_tuned": _worst(map(attainment_gap, compared), min, 2),
        "worst_tokens_ratio_vs_tuned": _worst(map(tokens_ratio, compared), min, 4),
        "share_ahead_of_single_static": share_ahead(compared),
        "goodput_of_bound": _worst(
            (goodput(of_model, HEADWAY.name) for of_model in models), min, 3
        ),
        "offline_throughput_ratio": _worst(map(_offline_ratio, cells), min, 4),
        "static_throughput_ratio": _worst(map(_static_throughput, saturated), min, 3),
        "static_latency_ratio": _worst(map(_static_latency, saturated), max, 3),
        "static_goodput_ratio": _worst((ratio for ratio, _ in known), min, 3),
        "static_goodput_ratio_is_lower_bound": any(bound for _, bound in known) if known else None,
        "model_error_median": _model_error(results),
    }


def _stock(cell: Cell) -> list[tuple[Row, Row]]:
    return [(ours, other) for ours, other in cell.matched() if other.is_stock]


def tuned(cell: Cell) -> tuple[Row, Row] | None:
    """We, and the best stock setting for this scenario."""
    pairs = _stock(cell)
    if not pairs:
        return None
    best = max(_attainment(other) for _, other in pairs)
    equal = [pair for pair in pairs if _attainment(pair[1]) >= best - SAME_ATTAINMENT]
    return max(equal, key=lambda pair: _tokens(pair[1]))


def attainment_gap(cell: Cell) -> float | None:
    """Our attainment less the tuned one, in percentage points."""
    pair = tuned(cell)
    return 100 * (_attainment(pair[0]) - _attainment(pair[1])) if pair else None


def tokens_ratio(cell: Cell) -> float | None:
    """Our tokens/s over the tuned ones."""
    pair = tuned(cell)
    return _ratio(_tokens(pair[0]), _tokens(pair[1])) if pair else None


def single_static(compared: Sequence[Cell]) -> str | None:
    """The stock setting that is best over all scenarios, of those measured in each."""
    names = [{other.arm for _, other in _stock(cell)} for cell in compared]
    everywhere = set.intersection(*names) if names else set()

    def score(arm: str) -> tuple[float, float]:
        rows = [row for cell in compared for row in cell.rows if row.arm == arm]
        return fmean(map(_attainment, rows)), fmean(map(_tokens, rows))

    return max(sorted(everywhere), key=score, default=None)


def is_ahead(ours: Row, other: Row) -> bool:
    """Whether we are clearly better than another arm."""
    gain = round(_attainment(ours) - _attainment(other), _DIGITS)
    more_tokens = _tokens(ours) >= AHEAD_TOKENS * _tokens(other)
    return gain >= AHEAD_ATTAINMENT or (gain >= -SAME_ATTAINMENT and more_tokens)


def share_ahead(compared: Sequence[Cell]) -> float | None:
    """Share of scenarios in which we are clearly better than the best single stock setting."""
    best = single_static(compared)
    if best is None:
        return None
    pairs = [pair for cell in compared for pair in _stock(cell) if pair[1].arm == best]
    return round(fmean(is_ahead(*pair) for pair in pairs), 3)


def _static_throughput(cell: Cell) -> float | None:
    pairs = [pair for pair in cell.matched() if pair[1].is_static_batch]
    return min((_ratio(_tokens(a), _tokens(b)) for a, b in pairs), default=None, key=_known)


def _static_latency(cell: Cell) -> float | None:
    pairs = [pair for pair in cell.matched() if pair[1].is_static_batch]
    medians = [tuple(row.mean("latency_s", "p50") or 0.0 for row in pair) for pair in pairs]
    return max((_ratio(ours, other) for ours, other in medians), default=None, key=_known_low)


def _offline_ratio(cell: Cell) -> float | None:
    if cell.load is not None:
        return None
    pairs = [pair for pair in cell.matched() if pair[1].arm == DEFAULT_STOCK]
    return next((_ratio(_tokens(ours), _tokens(other)) for ours, other in pairs), None)


def _model_error(results: Sequence[Result]) -> float | None:
    errors = [
        error for each in results if (error := (each.get("steps") or {}).get("model_error_median"))
    ]
    return round(median(errors), 4) if errors else None


def _attainment(row: Row) -> float:
    return row.mean("attainment") or 0.0


def _tokens(row: Row) -> float:
    return row.mean("tokens_per_s") or 0.0


def _ratio(ours: float, other: float) -> float | None:
    return ours / other if other else None


def _known(value: float | None) -> float:
    return float("inf") if value is None else value


def _known_low(value: float | None) -> float:
    return float("-inf") if value is None else value


def _worst(
    values: Iterable[float | None], worst: Callable[[list[float]], float], digits: int
) -> float | None:
    known = [value for value in values if value is not None]
    return round(worst(known), digits) if known else None
