from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from headway_runtime.bench import client_pool, results, run, server
from headway_runtime.bench.command_line import parser, read_settings
from headway_runtime.bench.engine_command import RUN_DIR, SCHEDULER, STEP_LOG
from headway_runtime.bench.runs import pending
from tests.unit.bench.fake_engine import FakeEngine, engine_on_a_free_port


@pytest.fixture
async def fake(tmp_path: Path) -> AsyncIterator[FakeEngine]:
    state = tmp_path / "state"
    (state / RUN_DIR).mkdir(parents=True)
    (state / STEP_LOG).write_bytes(b"")
    async with engine_on_a_free_port(state / RUN_DIR) as engine:
        yield engine


@pytest.fixture
def state(tmp_path: Path, fake: FakeEngine) -> Iterator[Path]:
    """A directory that says that the fake engine was started under it."""
    program = "import time; time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", program, SCHEDULER]) as process:
        document = {"pid": process.pid, "url": fake.url, "shape": "tiny"}
        (tmp_path / "state" / server.STATE_FILE).write_text(json.dumps(document))
        yield tmp_path / "state"
        process.kill()


async def test_runs_are_made_kept_packed_and_not_made_again(
    fake: FakeEngine,
    state: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_pool, "_SETTLE_S", 0.02)
    arguments = [
        *("--state", str(state), "--out", str(tmp_path / "out"), "--clients", "1"),
        *("--scenarios", "load-70", "--arms", "headway", "static-64", "--control", "headway"),
        *("--duration-s", "0.5", "--warm-up-s", "0.2", "--pack", str(tmp_path / "all.tar.gz")),
    ]
    assert await asyncio.to_thread(run.main, arguments) == 0
    found = results.read([tmp_path / "all.tar.gz"])
    assert sorted(each["name"] for each in found) == [
        "tiny.load-70.s1.headway",
        "tiny.load-70.s1.headway.control",
        "tiny.load-70.s1.static-64",
    ]
    assert {each["kv_blocks"] for each in found} == {44_000}
    assert all(each["summary"]["endings"]["complete"] > 0 for each in found)
    serials = [each.serial for each in fake.seated]
    assert serials == sorted(set(serials))
    assert "3 runs made, 0 left" in capsys.readouterr().out
    assert await asyncio.to_thread(run.main, arguments) == 0
    assert "0 runs to make" in capsys.readouterr().out


async def test_no_run_is_begun_that_the_time_left_cannot_hold(
    fake: FakeEngine, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        *("--state", str(state), "--out", str(tmp_path / "out"), "--clients", "1"),
        *("--scenarios", "load-70", "--arms", "headway", "--warm-up-s", "0", "--budget-s", "20"),
    ]
    assert await asyncio.to_thread(run.main, arguments) == 3
    assert "0 runs made, 1 left" in capsys.readouterr().out
    assert not fake.bodies


async def test_an_engine_with_a_queue_limit_runs_the_arms_that_are_named_after_it(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_pool, "_SETTLE_S", 0.02)

    async def made(queued: int | None) -> set[str]:
        document = json.loads((state / server.STATE_FILE).read_text())
        (state / server.STATE_FILE).write_text(json.dumps({**document, "queued": queued}))
        out = tmp_path / str(queued)
        arguments = [
            *("--state", str(state), "--out", str(out), "--clients", "1", "--warm-up-s", "0"),
            *("--scenarios", "load-70", "--duration-s", "0.3"),
            *("--arms", "stock-512-fcfs", "stock-queued-64", "stock-queued-128"),
        ]
        assert await asyncio.to_thread(run.main, arguments) == 0
        return {each["arm"] for each in results.read([out])}

    assert await made(None) == {"stock-512-fcfs"}
    assert await made(64) == {"stock-queued-64"}


async def test_programs_and_tenants_reach_the_engine_and_the_result(
    fake: FakeEngine, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_pool, "_SETTLE_S", 0.02)
    arguments = [
        *("--state", str(state), "--out", str(tmp_path / "out"), "--clients", "2"),
        *("--warm-up-s", "0", "--scenarios", "programs-tree", "--arms", "headway"),
        *("--duration-s", "1", "--capacity-tokens-per-s", "40000"),
    ]
    assert await asyncio.to_thread(run.main, arguments) == 0
    (found,) = results.read([tmp_path / "out"])
    assert found["programs"]["programs"] > 2
    assert found["programs"]["unfinished"] == 0
    assert set(found["sharing"]["tenants"]) == {"honest", "liar"}
    assert set(found["requests"]["tenant"]) <= {"honest", "liar"}
    told = [each["vllm_xargs"] for each in fake.bodies if "headway_program" in each["vllm_xargs"]]
    assert len(told) == len(found["requests"]["program"])


def test_without_an_engine_nothing_is_run(tmp_path: Path) -> None:
    assert run.main(["--state", str(tmp_path), "--out", str(tmp_path / "out")]) == 1


def test_a_plan_is_a_list_of_groups(tmp_path: Path) -> None:
    plan = [
        {"scenarios": ["load-70"], "arms": ["headway"], "seeds": [1, 2], "control": "headway"},
        {"scenarios": ["offline"], "arms": ["headway", "stock-8192-fcfs"], "seeds": [1]},
    ]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    options = parser("run", None).parse_args(["--out", "o", "--plan", str(tmp_path / "plan.json")])
    settings = read_settings(options, begun_s=0.0)
    assert len(pending(settings.groups, "s", (), None)) == 2 * 2 + 2


def test_a_capacity_can_be_given_for_one_scenario() -> None:
    options = parser("run", None).parse_args(
        ["--out", "o", "--capacity", "prompts-long=15000", "offline=30000"]
    )
    settings = read_settings(options, begun_s=0.0)
    group = settings.groups[0]
    assert settings.capacity(group.scenarios[0]) == 29_000
    assert settings.capacity_tokens_per_s["prompts-long"] == 15_000
