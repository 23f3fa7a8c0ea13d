"""Fits the step time of the simulated engine to logs of a real one, and tells how far it is off.

The error is stated on runs that were held out: the last of several logs, or the last part of the
only one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headway_runtime.bench.results import read_steps
from headway_runtime.bench.step_log import Rows, column
from headway_runtime.bench.step_seconds import gpu_seconds
from headway_runtime.executors.simulated.step_time import GpuStepTime

_Matrix = npt.NDArray[np.float64]
_Column = npt.NDArray[np.float64]

_ROUNDS = 20
_OUTLIER = 0.15
"""A step that is off by more than this share counts less."""
_LEAST_STEPS = 20


@dataclass(frozen=True)
class FitError:
    """How far predictions are off, as shares of what was measured.

    Attributes:
        steps: steps compared.
        median: median of the absolute relative errors; nan without steps.
        p90: their 90th percentile.
    """

    steps: int
    median: float
    p90: float


@dataclass(frozen=True)
class Fit:
    """What was fitted.

    Attributes:
        step_time: of the simulated engine; its spread is that of the fitted steps.
        decode_error: on held-out steps that only decode.
        mixed_error: on other held-out steps.
    """

    step_time: GpuStepTime
    decode_error: FitError
    mixed_error: FitError


def fit(logs: Sequence[Rows], held_out: Sequence[Rows], graph_tokens: int = 512) -> Fit:
    """Fit the step time to logs.

    Args:
        logs: runs it is fitted to.
        held_out: runs its error is stated on.
        graph_tokens: largest step that runs as a CUDA graph.

    Raises:
        ValueError: there are too few steps of a kind that were timed.
    """
    decode, mixed = (
        _solved(logs, graph_tokens, mixed=False),
        _solved(logs, graph_tokens, mixed=True),
    )
    launches = [
        float(np.median(each)) if len(each) else 0.0 for each in _launches(logs, graph_tokens)
    ]
    residuals = np.concatenate(
        [
            _residuals(logs, decode, graph_tokens, mixed=False),
            _residuals(logs, mixed, graph_tokens, mixed=True),
        ]
    )
    step_ms, decode_ms, context_ms = (1e3 * float(each) for each in decode)
    base_ms, prompt_ms, each_ms, read_ms, pair_ms = (1e3 * float(each) for each in mixed)
    return Fit(
        GpuStepTime(
            (step_ms, decode_ms, context_ms),
            (base_ms, prompt_ms, each_ms, read_ms, pair_ms),
            graph_tokens,
            launches[0],
            launches[1],
            launches[2],
            spread=float(np.median(np.abs(residuals)) * 1.4826),
        ),
        _error(_residuals(held_out, decode, graph_tokens, mixed=False)),
        _error(_residuals(held_out, mixed, graph_tokens, mixed=True)),
    )


def split(logs: Sequence[Rows], share: float) -> tuple[list[Rows], list[Rows]]:
    """Runs to fit to and runs to hold out, about that share of them; one run is cut in two."""
    if len(logs) > 1:
        kept = min(len(logs) - 1, max(1, round(len(logs) * (1 - share))))
        return list(logs[:kept]), list(logs[kept:])
    (log,) = logs
    first = np.arange(len(log)) < len(log) * (1 - share)
    return [log[first]], [log[~first]]


def _features(log: Rows, graph_tokens: int, *, mixed: bool) -> tuple[_Matrix, _Column]:
    """Parts of the timed steps of one kind, shape (steps, 3 or 5), and their seconds."""
    seconds = gpu_seconds(log, graph_tokens)
    chosen = (seconds > 0) & ((column(log, "prefill_tokens") > 0) == mixed)
    steps = log[chosen]
    parts = [np.ones(len(steps))]
    if mixed:
        parts.append(column(steps, "prefill_tokens") / 1e3)
    parts += [column(steps, "decodes") / 64, column(steps, "decode_context") / 1e5]
    if mixed:
        parts.append(column(steps, "attention_pairs") / 1e6)
    return np.stack(parts, axis=1), seconds[chosen]


def _gathered(logs: Sequence[Rows], graph_tokens: int, *, mixed: bool) -> tuple[_Matrix, _Column]:
    found = [_features(log, graph_tokens, mixed=mixed) for log in logs]
    return np.concatenate([each for each, _ in found]), np.concatenate([each for _, each in found])


def _solved(logs: Sequence[Rows], graph_tokens: int, *, mixed: bool) -> _Column:
    """Least squares of relative errors; outliers count less, and nothing is negative."""
    features, seconds = _gathered(logs, graph_tokens, mixed=mixed)
    if len(seconds) < _LEAST_STEPS:
        kind = "with prefill" if mixed else "that only decode"
        raise ValueError(f"{len(seconds)} timed steps {kind}, at least {_LEAST_STEPS} are needed")
    scaled = features / seconds[:, None]
    trust = np.ones(len(seconds))
    theta = np.zeros(features.shape[1])
    for _ in range(_ROUNDS):
        theta = _not_negative(scaled * trust[:, None], trust)
        off_by = np.abs(scaled @ theta - 1)
        trust = np.sqrt(np.minimum(1, _OUTLIER / np.maximum(off_by, 1e-9)))
    return theta


def _not_negative(matrix: _Matrix, target: _Column) -> _Column:
    theta = np.zeros(matrix.shape[1])
    kept = np.arange(matrix.shape[1])
    while len(kept):
        found = np.linalg.lstsq(matrix[:, kept], target, rcond=None)[0]
        if (found >= 0).all():
            theta[kept] = found
            break
        kept = kept[found >= 0]
    return theta


def _residuals(logs: Sequence[Rows], theta: _Column, graph_tokens: int, *, mixed: bool) -> _Column:
    features, seconds = _gathered(logs, graph_tokens, mixed=mixed)
    return (features @ theta) / seconds - 1


def _error(residuals: _Column) -> FitError:
    if not len(residuals):
        return FitError(0, float("nan"), float("nan"))
    median, high = np.percentile(np.abs(residuals), (50, 90))
    return FitError(len(residuals), float(median), float(high))


def _launches(logs: Sequence[Rows], graph_tokens: int) -> list[_Column]:
    """Seconds from decision to the end of the launch: decode-only, other graphs, eager steps."""
    steps = np.concatenate(logs)
    took = column(steps, "launched_s") - column(steps, "schedule_s")
    prefill, tokens = column(steps, "prefill_tokens"), column(steps, "tokens")
    graph = tokens <= graph_tokens
    return [took[graph & (prefill == 0)], took[graph & (prefill > 0)], took[~graph]]


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="headway_runtime.bench.fit", description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path, help="*.steps.npz, one for each run")
    parser.add_argument("--hold-out", type=float, default=0.25, help="share that is held out")
    parser.add_argument("--graph-tokens", type=int, default=512)
    given = parser.parse_args(arguments)
    found = fit(
        *split([read_steps(path) for path in given.logs], given.hold_out), given.graph_tokens
    )
    sys.stdout.write(f"{found.step_time}\n")
    for kind, error in (("decode-only", found.decode_error), ("mixed", found.mixed_error)):
        sys.stdout.write(
            f"{kind}: {error.steps} held-out steps, relative error"
            f" median {100 * error.median:.1f} %, p90 {100 * error.p90:.1f} %\n"
        )


if __name__ == "__main__":
    main()
