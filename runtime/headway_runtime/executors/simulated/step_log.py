"""Logs of an engine's steps, real or simulated.

A log has a row for each step in order, with the columns of :data:`COLUMNS`. An engine that
schedules ahead looks at a step's output only when the next one is launched, so that a log tells the
end of a step only where the engine waited for it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]

COLUMNS = (
    "scheduled_at_s",
    "launched_at_s",
    "finished_at_s",
    "prefill_tokens",
    "decodes",
    "decode_context",
    "attention_pairs",
    "total_tokens",
)

_OF_THE_BENCHMARK = {
    "schedule_s": "scheduled_at_s",
    "launched_s": "launched_at_s",
    "update_s": "finished_at_s",
    "tokens": "total_tokens",
}
"""What the GPU benchmark calls columns, where it has other names."""

SEEN_MARGIN_S = 0.0005
"""An output that was looked at sooner after a launch was there before."""


@dataclass(frozen=True)
class StepLog:
    """Steps of one run, a row of each column for each step.

    Attributes:
        columns: by name; shape (steps,), float.
    """

    columns: dict[str, Column]

    def __len__(self) -> int:
        return len(self.columns[COLUMNS[0]])

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def rows(self, chosen: npt.NDArray[np.bool_]) -> StepLog:
        """Only the chosen steps; shape (steps,), bool."""
        return StepLog({name: column[chosen] for name, column in self.columns.items()})

    @property
    def gpu_s(self) -> Column:
        """Time of each step on the GPU, in seconds, as far as it was seen; nan where it was not.

        A step begins when the one before ends. One that found the GPU idle is left out: how long
        the engine took to begin with it is not known.
        """
        scheduled, launched = self["scheduled_at_s"], self["launched_at_s"]
        finished = self["finished_at_s"]
        seen = finished > launched + SEEN_MARGIN_S
        seen[:-1] &= finished[:-1] > launched[1:] + SEEN_MARGIN_S
        took = np.full(len(self), np.nan)
        behind = seen[1:] & seen[:-1] & (scheduled[1:] < finished[:-1])
        took[1:][behind] = (finished[1:] - finished[:-1])[behind]
        return took


def read(path: Path) -> StepLog:
    """Read a log from CSV with a header, from npz, or from npz as the GPU benchmark writes it.

    Raises:
        ValueError: a column is missing, or columns differ in length.
        OSError: the file cannot be read.
    """
    found: dict[str, Column] = {}
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            if "columns" in arrays.files:
                names = [str(name) for name in arrays["columns"]]
                columns = zip(names, arrays["steps"].T, strict=True)
                found = {_OF_THE_BENCHMARK.get(name, name): column for name, column in columns}
            else:
                found = {name: arrays[name].astype(np.float64) for name in arrays.files}
    else:
        with path.open(newline="") as lines:
            rows = list(csv.DictReader(lines))
        header = rows[0] if rows else {}
        found = {name: np.array([float(row[name]) for row in rows]) for name in header}
    missing = [name for name in COLUMNS if name not in found]
    if missing:
        raise ValueError(f"{path}: no column {', '.join(missing)}")
    if len({len(found[name]) for name in COLUMNS}) > 1:
        raise ValueError(f"{path}: columns differ in length")
    order = np.argsort(found["scheduled_at_s"], kind="stable")
    return StepLog({name: found[name][order] for name in COLUMNS})


def write(path: Path, steps: Iterable[object]) -> None:
    """Write a log of steps that have the columns as attributes, as CSV."""
    values = attrgetter(*COLUMNS)
    with path.open("w", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(COLUMNS)
        writer.writerows(values(step) for step in steps)
