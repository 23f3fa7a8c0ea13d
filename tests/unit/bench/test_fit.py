"""Fitting the step time to logs of steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from headway_runtime.bench import mixes
from headway_runtime.bench.arms import parse
from headway_runtime.bench.fit import fit, main, split
from headway_runtime.bench.lengths import Lengths
from headway_runtime.bench.results import read_steps, write_steps
from headway_runtime.bench.simulated import SimulatedGpu, simulate
from headway_runtime.bench.step_log import COLUMNS, Rows, column
from headway_runtime.bench.step_seconds import gpu_seconds
from headway_runtime.bench.workload import mixed_workload
from headway_runtime.executors.simulated.step_time import GpuStepTime
from headway_runtime.scheduling.timing.step_shape import StepShape

TRUTH = GpuStepTime(
    decode_ms=(7, 2, 5),
    mixed_ms=(4, 30, 3, 6, 1.5),
    decode_launch_s=0.002,
    graph_launch_s=0.006,
    eager_launch_s=0.020,
)


def log(seed: int, spread: float = 0.05, truth: GpuStepTime = TRUTH) -> Rows:
    """A run that goes through many shapes of steps."""
    chat, batch = mixes.standard()
    mix = (chat, replace(batch, prompts=Lengths(1000, 20_000)))
    timing = replace(truth, spread=spread, launch_spread=0.1)
    workload = mixed_workload(mix, 10, 24, seed)
    return simulate(SimulatedGpu(timing), parse("stock-8192-fcfs"), workload, seed, 600).steps


@pytest.fixture(scope="module")
def logs() -> list[Rows]:
    return [log(seed) for seed in range(4)]


def close(found: Sequence[float], truth: Iterable[float], rel: float) -> None:
    assert list(found) == [pytest.approx(each, rel=rel) for each in truth]


def test_it_finds_what_the_steps_were_made_with(logs: list[Rows]) -> None:
    found = fit(*split(logs, 0.25))
    close(found.step_time.decode_ms, TRUTH.decode_ms, 0.1)
    close(found.step_time.mixed_ms[:2], TRUTH.mixed_ms[:2], 0.15)
    # Few decodes and short contexts tell little of what each of the two costs, but of their sum.
    shapes = [StepShape(400, 20, 30_000, 2e5), StepShape(8000, 60, 60_000, 4e7)]
    close([found.step_time.gpu_s(each) for each in shapes], map(TRUTH.gpu_s, shapes), 0.03)
    assert found.step_time.decode_launch_s == pytest.approx(0.002, rel=0.05)
    assert found.step_time.graph_launch_s == pytest.approx(0.006, rel=0.05)
    assert found.step_time.eager_launch_s == pytest.approx(0.020, rel=0.05)
    assert found.step_time.spread == pytest.approx(0.05, rel=0.15)
    # Half of a normal distribution of 5 %: median 3.4 %, 90th percentile 8.2 %.
    for error in (found.decode_error, found.mixed_error):
        assert error.steps > 50
        assert error.median == pytest.approx(0.034, abs=0.01)
        assert error.p90 == pytest.approx(0.082, abs=0.02)


def test_the_error_is_that_of_runs_that_it_has_not_seen(logs: list[Rows]) -> None:
    other = logs[3].copy()
    for name in ("schedule_s", "launched_s", "update_s"):
        other[:, COLUMNS.index(name)] *= 2
    found = fit(logs[:3], [other])
    assert found.mixed_error.median == pytest.approx(0.5, abs=0.05)


def test_steps_whose_end_was_not_seen_teach_nothing(logs: list[Rows]) -> None:
    hidden = log(1, spread=0.0, truth=replace(TRUTH, eager_launch_s=0.2))
    eager = column(hidden, "tokens") > 512
    seconds = gpu_seconds(hidden, 512)
    seen = np.flatnonzero(eager & (seconds > 0))
    assert 20 < len(seen) < 0.6 * eager.sum()
    names = ("prefill_tokens", "decodes", "decode_context", "attention_pairs")
    shapes = [StepShape(*(column(hidden, name)[each] for name in names)) for each in seen]
    assert seconds[seen] == pytest.approx([TRUTH.gpu_s(each) for each in shapes], rel=1e-6)
    found = fit([hidden, *logs], logs)
    close(found.step_time.mixed_ms[:2], TRUTH.mixed_ms[:2], 0.1)
    assert found.mixed_error.median < 0.04


def test_a_hiccup_changes_little(logs: list[Rows]) -> None:
    shaken = []
    for each in logs:
        pauses = np.array(Random(1).choices((0.0, 0.1), (99, 1), k=len(each)))  # noqa: S311
        late = each.copy()
        late[:, COLUMNS.index("update_s")] += np.cumsum(pauses)
        for name in ("schedule_s", "launched_s"):
            late[:, COLUMNS.index(name)] += np.cumsum(pauses) - pauses
        shaken.append(late)
    close(fit(shaken, logs).step_time.decode_ms, TRUTH.decode_ms, 0.15)


def test_one_run_is_cut_in_two_and_several_are_kept_whole(logs: list[Rows]) -> None:
    first, second = split(logs[:1], 0.25)
    assert len(first[0]) + len(second[0]) == len(logs[0])
    assert len(second[0]) == pytest.approx(0.25 * len(logs[0]), abs=1)
    assert [len(each) for each in split(logs, 0.25)] == [3, 1]
    assert [len(each) for each in split(logs[:2], 0.01)] == [1, 1]


def test_what_is_no_log_is_refused(logs: list[Rows], tmp_path: Path) -> None:
    other = tmp_path / "other.npz"
    np.savez(other, steps=logs[0], columns=np.array(["a", "b"]))
    with pytest.raises(ValueError, match="columns a, b, not serial, schedule_s"):
        read_steps(other)
    with pytest.raises(ValueError, match="at least 20 are needed"):
        fit([logs[0][:5]], [logs[0][:5]])


def test_the_command_line_tells_the_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in range(2):
        write_steps(tmp_path, str(seed), log(seed, spread=0.0))
    main([str(path) for path in sorted(tmp_path.iterdir())])
    told = capsys.readouterr().out
    assert "GpuStepTime(decode_ms=" in told
    assert "relative error median 0.0 %" in told
