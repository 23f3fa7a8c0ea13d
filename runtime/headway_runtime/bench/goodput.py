"""The load that an arm bears in steady state. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from headway_runtime.bench.aggregate import Cell, Row
from headway_runtime.bench.arms import HEADWAY

ATTAINMENT_GOAL = 0.95
STEADY_FAMILY = "standard"
"""Scenarios that differ in their load alone and last long enough to see a backlog grow."""


def by_shape(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Scenarios of each model."""
    shapes = dict.fromkeys(cell.shape for cell in cells)
    return [[cell for cell in cells if cell.shape == shape] for shape in shapes]


def goodput(cells: Sequence[Cell], arm: str) -> float | None:
    """Highest steady load at which an arm attains its goal and no backlog grows.

    Returns:
        A share of the capacity bound; 0 if it bears none of the loads, None if it was not measured.
    """
    steady = _steady(cells, arm)
    borne = [
        load
        for load, row in steady
        if (row.mean("attainment") or 0) >= ATTAINMENT_GOAL and not row.backlog_grows
    ]
    return max(borne, default=0.0) if steady else None


def goodput_ratio(cells: Sequence[Cell]) -> tuple[float, bool] | None:
    """Our goodput over that of static batching at its best size, and whether it may be higher.

    It is only a lower bound where static batching bears none of its loads: the lowest one is then
    taken for its goodput. None if either was not measured.
    """
    ours = goodput(cells, HEADWAY.name)
    arms = sorted({row.arm for cell in cells for row in cell.rows if row.is_static_batch})
    static = [load for arm in arms if (load := goodput(cells, arm)) is not None]
    if ours is None or not static:
        return None
    if max(static):
        return ours / max(static), False
    lowest = min(load for arm in arms for load, _ in _steady(cells, arm))
    return ours / lowest, True


def _steady(cells: Sequence[Cell], arm: str) -> list[tuple[float, Row]]:
    return [
        (cell.load, row)
        for cell in cells
        if cell.family == STEADY_FAMILY and cell.load is not None
        for row in cell.rows
        if row.arm == arm
    ]
