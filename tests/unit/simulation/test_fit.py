"""Fitting the step time to logs of steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from headway_runtime.executors.simulated.arms import ARMS
from headway_runtime.executors.simulated.compare import Scenario, simulate
from headway_runtime.executors.simulated.fit import fit, main, split
from headway_runtime.executors.simulated.step_log import COLUMNS, StepLog, read, write
from headway_runtime.executors.simulated.step_time import GpuStepTime
from headway_runtime.executors.simulated.workload import Workload
from headway_runtime.scheduling.step_shape import StepShape
from tests.unit.simulation.watched import chance

TRUTH = GpuStepTime(
    decode_ms=(7, 2, 5),
    mixed_ms=(4, 30, 3, 6, 1.5),
    decode_launch_s=0.002,
    graph_launch_s=0.006,
    eager_launch_s=0.020,
)


def log(path: Path, seed: int, spread: float = 0.05) -> StepLog:
    """A run that goes through many shapes of steps, through a file."""
    workload = Workload(9, 1, seconds=12, batch_prompt=(1000, 20_000))
    results, _ = simulate(Scenario(workload, spread=spread, step_time=TRUTH), ARMS["stock"], seed)
    write(path, results.steps)
    return read(path)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[StepLog]:
    folder = tmp_path_factory.mktemp("logs")
    return [log(folder / f"{seed}.csv", seed) for seed in range(4)]


def close(found: Sequence[float], truth: Iterable[float], rel: float) -> None:
    assert list(found) == [pytest.approx(each, rel=rel) for each in truth]


def test_it_finds_what_the_steps_were_made_with(logs: list[StepLog]) -> None:
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


def test_the_error_is_that_of_runs_that_it_has_not_seen(logs: list[StepLog]) -> None:
    other = dict(logs[3].columns)
    for name in ("scheduled_at_s", "launched_at_s", "finished_at_s"):
        other[name] = 2 * other[name]
    found = fit(logs[:3], [StepLog(other)])
    assert found.mixed_error.median == pytest.approx(0.5, abs=0.05)


def test_steps_whose_end_was_not_seen_teach_nothing(logs: list[StepLog], tmp_path: Path) -> None:
    slow = replace(TRUTH, eager_launch_s=0.2)
    workload = Workload(9, 1, seconds=12)
    results, _ = simulate(Scenario(workload, spread=0.0, step_time=slow), ARMS["stock"], 1)
    write(tmp_path / "slow.csv", results.steps)
    hidden = read(tmp_path / "slow.csv")
    eager = hidden["total_tokens"] > 512
    assert eager.sum() > 20
    seen = hidden.rows(hidden.gpu_s > 0)
    assert (seen["total_tokens"] > 512).sum() < eager.sum() / 3
    found = fit([hidden, *logs], logs)
    close(found.step_time.mixed_ms[:2], TRUTH.mixed_ms[:2], 0.1)
    assert found.mixed_error.median < 0.04


def test_a_hiccup_changes_little(logs: list[StepLog]) -> None:
    shaken = []
    for each in logs:
        columns = dict(each.columns)
        late = columns["finished_at_s"].copy()
        pauses = np.array(Random(1).choices((0.0, 0.1), (99, 1), k=len(each)))  # noqa: S311
        late += np.cumsum(pauses)
        for name in ("scheduled_at_s", "launched_at_s"):
            columns[name] = columns[name] + np.cumsum(pauses) - pauses
        shaken.append(StepLog({**columns, "finished_at_s": late}))
    close(fit(shaken, logs).step_time.decode_ms, TRUTH.decode_ms, 0.15)


def test_one_run_is_cut_in_two_and_several_are_kept_whole(logs: list[StepLog]) -> None:
    first, second = split(logs[:1], 0.25)
    assert len(first[0]) + len(second[0]) == len(logs[0])
    assert len(second[0]) == pytest.approx(0.25 * len(logs[0]), abs=1)
    assert [len(each) for each in split(logs, 0.25)] == [3, 1]
    assert [len(each) for each in split(logs[:2], 0.01)] == [1, 1]


def test_npz_is_read_like_csv(logs: list[StepLog], tmp_path: Path) -> None:
    path = tmp_path / "log.npz"
    np.savez(path, **logs[0].columns)
    assert all((read(path)[name] == logs[0][name]).all() for name in COLUMNS)


def test_what_is_no_log_is_refused(logs: list[StepLog], tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("scheduled_at_s,launched_at_s\n1,2\n")
    with pytest.raises(ValueError, match="no column finished_at_s, prefill_tokens"):
        read(path)
    uneven = tmp_path / "log.npz"
    np.savez(uneven, **{**logs[0].columns, "decodes": np.ones(3)})
    with pytest.raises(ValueError, match="differ in length"):
        read(uneven)
    few = logs[0].rows(np.arange(len(logs[0])) < 5)
    with pytest.raises(ValueError, match="at least 20 are needed"):
        fit([few], [few])


def test_the_command_line_tells_the_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / f"{seed}.csv" for seed in range(2)]
    for seed, path in enumerate(paths):
        log(path, seed, spread=0.0)
    main([str(path) for path in paths])
    told = capsys.readouterr().out
    assert "GpuStepTime(decode_ms=" in told
    assert "relative error median 0.0 %" in told


def test_chance_is_passed_in() -> None:
    step_time = replace(TRUTH, spread=0.1, random=chance(1))
    scenario = Scenario(Workload(4, 1, seconds=3), step_time=step_time)
    assert simulate(scenario, ARMS["planner"], 5)[1] == simulate(scenario, ARMS["planner"], 5)[1]


def test_a_log_of_the_gpu_benchmark_is_read(tmp_path: Path) -> None:
    names = [
        *("serial", "schedule_s", "launched_s", "update_s", "prefill_tokens", "decodes"),
        *("decode_context", "attention_pairs", "tokens"),
    ]
    steps = np.array([[7, 2.0, 2.1, 2.5, 0, 3, 30, 0, 3], [7, 1.0, 1.1, 1.5, 5, 0, 0, 12.5, 5]])
    np.savez(tmp_path / "steps.npz", columns=np.array(names), steps=steps)
    log = read(tmp_path / "steps.npz")
    assert list(log["scheduled_at_s"]) == [1.0, 2.0]
    assert list(log["finished_at_s"]) == [1.5, 2.5]
    assert list(log["total_tokens"]) == [5, 3]
