from __future__ import annotations

import dataclasses
import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway_runtime.bench import results
from headway_runtime.bench.plan_figures import latest_record, plan_figures
from headway_runtime.bench.step_figures import step_figures
from headway_runtime.bench.step_log import COLUMNS, StepLog, read_steps
from headway_runtime.exchange.step_record import StepRecord


def result(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


def test_results_come_back_from_folders_and_archives(tmp_path: Path) -> None:
    folder, archive = tmp_path / "out", tmp_path / "lease-1.tar.gz"
    for name in ("a.s1.headway", "a.s2.headway"):
        results.write(folder, result(name, value=1.5))
    results.pack(folder, archive)
    expected = [result("a.s1.headway", value=1.5), result("a.s2.headway", value=1.5)]
    assert results.read([folder]) == expected
    assert results.read([archive]) == expected


def test_step_logs_travel_with_their_results(tmp_path: Path) -> None:
    folder, archive = tmp_path / "out", tmp_path / "lease.tar.gz"
    results.write(folder, result("a"))
    results.write_steps(folder, "a", np.array([row(1, tokens=10)]))
    results.pack(folder, archive)
    assert results.read([archive]) == [result("a")]
    with tarfile.open(archive) as packed:
        file = packed.extractfile("a.steps.npz")
        assert file is not None
        content = io.BytesIO(file.read())
    with np.load(content) as kept:
        assert kept["steps"][0, list(kept["columns"]).index("tokens")] == 10


def test_the_last_result_of_a_run_counts(tmp_path: Path) -> None:
    for index, folder in enumerate(("first", "second")):
        results.write(tmp_path / folder, result("a", value=index))
    assert results.read([tmp_path / "first", tmp_path / "second"]) == [result("a", value=1)]


def test_done_runs_are_found_wherever_they_are(tmp_path: Path) -> None:
    results.write(tmp_path / "out", result("a"))
    results.write(tmp_path / "old", result("b"))
    results.pack(tmp_path / "old", tmp_path / "old.tar.gz")
    (tmp_path / "list.txt").write_text("c\nd\n")
    paths = [tmp_path / name for name in ("out", "old.tar.gz", "list.txt", "not-there")]
    assert results.done(paths) == {"a", "b", "c", "d"}


def row(serial: int, **fields: float) -> list[float]:
    return [float({"serial": serial, **fields}.get(name, 0)) for name in COLUMNS]


def test_a_step_log_is_read_by_run(tmp_path: Path) -> None:
    log = StepLog(tmp_path / "steps")
    log.add(row(1, tokens=10))
    log.flush()
    log.add(row(2, tokens=20))
    log.add(row(2, tokens=30))
    log.flush()
    at = COLUMNS.index("tokens")
    assert read_steps(tmp_path / "steps")[:, at].tolist() == [10, 20, 30]
    assert read_steps(tmp_path / "steps", 2)[:, at].tolist() == [20, 30]


def test_a_step_log_that_is_being_written_is_read_up_to_its_last_whole_row(tmp_path: Path) -> None:
    log = StepLog(tmp_path / "steps")
    log.add([*row(1, tokens=10), 1.0, 1.0])
    log.flush()
    assert len(read_steps(tmp_path / "steps")) == 1


def record(**fields: int) -> StepRecord:
    return StepRecord(
        **{each.name: fields.get(each.name, 0) for each in dataclasses.fields(StepRecord)}
    )


def test_what_the_plug_in_did_is_told_between_two_records() -> None:
    before = record(step=10, step_ns_total=1000, plan_ns_total=50, plugin_ns_total=60, late_total=1)
    after = record(
        step=30,
        step_ns_total=3000,
        plan_ns_total=70,
        plugin_ns_total=100,
        late_total=3,
        failed_total=1,
    )
    assert plan_figures(before, after) == {
        "steps": 20,
        "failed": 1,
        "late": 2,
        "breaker": 0,
        "plan_share": 0.01,
        "plugin_share": 0.02,
    }
    assert plan_figures(before, before) is None
    assert plan_figures(None, after) is None


def test_an_engine_without_records_has_none(tmp_path: Path) -> None:
    assert latest_record(tmp_path) is None
    (tmp_path / "engine-0.statistics").write_bytes(b"something else")
    assert latest_record(tmp_path) is None


def test_steps_in_figures() -> None:
    rows = np.array(
        [
            row(1, schedule_s=9.0, scheduled_s=9.001, tokens=100, kv_usage=0.5, token_budget=512),
            row(1, schedule_s=9.5, scheduled_s=9.503, tokens=300, preemptions=2, token_budget=256),
        ]
    )
    figures = step_figures(rows)
    assert figures is not None
    assert (figures["steps"], figures["tokens_mean"], figures["preemptions"]) == (2, 200.0, 2)
    assert figures["schedule_ms_mean"] == pytest.approx(2.0)
    assert figures["curve"] == {
        "time_s": [0.0, 0.5],
        "token_budget": [512, 256],
        "tokens": [100, 300],
    }
    assert step_figures(rows[:0]) is None
