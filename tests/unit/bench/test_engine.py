from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from headway_runtime.bench import client_pool, engine, server
from headway_runtime.bench.arms import HEADWAY, Seating, parse
from headway_runtime.bench.catalogue import named
from headway_runtime.bench.client import Target
from headway_runtime.bench.client_pool import ClientPool
from headway_runtime.bench.engine import Engine, EngineError, policy
from headway_runtime.bench.engine_command import DOOR, SCHEDULER, Start, command, environment
from headway_runtime.bench.measure import Bench, line, result_of
from headway_runtime.bench.mixes import INTERACTIVE, standard
from headway_runtime.bench.model_folder import SHAPES, TINY, write_model
from headway_runtime.bench.outcome import Ending
from headway_runtime.bench.runs import Run
from headway_runtime.bench.workload import Request, mixed_workload
from headway_runtime.exchange import policy_file
from headway_runtime.policy import Mode, Tenant, WhenUnmet, decode
from tests.unit.bench.fake_engine import FakeEngine, engine_on_a_free_port


@pytest.fixture(autouse=True)
def _no_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_pool, "_SETTLE_S", 0.02)


@pytest.fixture
async def fake(tmp_path: Path) -> AsyncIterator[FakeEngine]:
    async with engine_on_a_free_port(tmp_path) as fake_engine:
        yield fake_engine


async def test_a_run_puts_its_arm_in_force_and_empties_the_cache(
    fake: FakeEngine, tmp_path: Path
) -> None:
    workload = mixed_workload(standard(), 20.0, 1.0, seed=1)
    run = Run("tiny", named(["load-70"])[0], 1, HEADWAY)

    def run_it() -> dict[str, object]:
        with ClientPool(2) as clients:
            bench = Bench(Engine(fake.url, tmp_path), clients, "model")
            loaded = bench.load(run.arm, workload, serial=5, give_up_s=30.0)
        return result_of(run, workload, loaded)

    result = await asyncio.to_thread(run_it)
    assert [(each.arm.name, each.serial) for each in fake.seated] == [("headway", 5)]
    assert fake.seated[0].priorities == {"interactive": 0, "batch": 1}
    assert fake.resets == 3 * 2
    assert result["engine_version"] == "0.26.0"
    figures = result["summary"]
    assert isinstance(figures, dict)
    assert figures["endings"]["complete"] == len(workload.requests)
    # One more was sent to make the engine look for its arm.
    assert len(fake.bodies) == len(workload.requests) + 1
    assert "tiny.load-70.s1.headway: inside" in line(result, workload.classes)
    json.dumps(result)


async def test_requests_keep_their_order_over_several_processes(fake: FakeEngine) -> None:
    requests = [
        Request(0.0, "chat", 10 + index, 1 + index, tokens_seed=index) for index in range(7)
    ]

    def offer() -> list[tuple[int, int, Ending]]:
        with ClientPool(3) as clients:
            outcomes = clients.offer(requests, Target(fake.url, "model", 30.0))
        return [(each.prompt_tokens, len(each.token_s), each.ending) for each in outcomes]

    expected = [(10 + index, 1 + index, Ending.COMPLETE) for index in range(7)]
    assert await asyncio.to_thread(offer) == expected


async def test_an_engine_that_does_not_take_an_arm_is_no_run(
    fake: FakeEngine, tmp_path: Path
) -> None:
    with pytest.raises(EngineError, match="does not know of arms"):
        Engine(fake.url, tmp_path).seat(parse("static-64"), (INTERACTIVE,), 1, lambda: None)


async def test_an_arm_is_asked_for_until_the_engine_was_idle(
    fake: FakeEngine, tmp_path: Path
) -> None:
    fake.arms.applied(Seating(parse("static-32"), 0))
    knocks: list[int] = []

    def knock() -> None:
        knocks.append(len(knocks))
        if len(knocks) == 3:
            fake.arms.applied(Seating(parse("static-64"), 1))

    word = Engine(fake.url, tmp_path).seat(parse("static-64"), (INTERACTIVE,), 1, knock)
    assert (word["arm"], len(knocks)) == ("static-64", 3)


async def test_an_engine_that_is_never_idle_is_no_run(
    fake: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_TIMEOUT_S", 0.0)
    fake.arms.applied(Seating(parse("static-32"), 0))
    with pytest.raises(EngineError, match="never idle"):
        Engine(fake.url, tmp_path).seat(parse("static-64"), (INTERACTIVE,), 1, lambda: None)


async def test_an_engine_that_refuses_the_policy_is_no_run(
    fake: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.arms.applied(Seating(HEADWAY, 1))
    seat = Engine(fake.url, tmp_path).seat
    seat(HEADWAY, (INTERACTIVE,), 1, fake.step)
    monkeypatch.setattr(engine, "_TIMEOUT_S", 0.0)
    fake.arms.applied(Seating(HEADWAY, 2))
    with pytest.raises(EngineError, match="refuses the policy"):
        seat(HEADWAY, (INTERACTIVE, INTERACTIVE), 2, fake.step)


def test_the_policy_of_a_run_holds_its_classes_and_nothing_tuned(tmp_path: Path) -> None:
    policy_file.write(tmp_path / "policy", policy((INTERACTIVE,), 9))
    read = decode(policy_file.read(tmp_path / "policy"))
    assert read.classes == (INTERACTIVE,)
    assert (read.mode, read.stamp.counter) == (Mode.ACT, 9)
    assert (read.token_budget, read.max_batch_size) == (None, None)


@pytest.mark.parametrize(("arm", "mode"), [("headway", Mode.ACT), ("vtc", Mode.OFF)])
async def test_tenants_are_told_apart_whoever_plans(
    fake: FakeEngine, tmp_path: Path, arm: str, mode: Mode
) -> None:
    tenants = (Tenant("acme"), Tenant("globex", 4))
    shed = replace(INTERACTIVE, when_unmet=WhenUnmet.SHED)
    fake.arms.applied(Seating(parse(arm), 7))
    Engine(fake.url, tmp_path).seat(parse(arm), (shed,), 7, fake.step, tenants)
    read = decode(policy_file.read(tmp_path / policy_file.FILE_NAME))
    assert (read.tenants, read.trust_headers) == (tenants, True)
    assert (read.mode, read.stamp.counter) == (mode, 7)
    # Without Headway its door refuses nobody.
    assert read.classes == ((shed,) if mode is Mode.ACT else ())
    wanted = fake.arms.wanted()
    assert wanted is not None
    assert wanted.weights == {"acme": 1, "globex": 4}


@pytest.mark.parametrize("shape", [*SHAPES, TINY])
def test_a_model_folder_is_a_model_with_a_tokenizer(shape: str, tmp_path: Path) -> None:
    from tokenizers import Tokenizer  # noqa: PLC0415 - takes a moment

    folder = write_model(shape, tmp_path)
    config = json.loads((folder / "config.json").read_text())
    assert config["num_attention_heads"] % config["num_key_value_heads"] == 0
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert tokenizer.get_vocab_size() == config["vocab_size"]
    assert tokenizer.decode([5, config["vocab_size"] - 1]) == f"w5w{config['vocab_size'] - 1}"
    assert tokenizer.encode("w5 w7").ids == [5, 7]


def test_the_engine_is_started_with_the_scheduler_under_test(tmp_path: Path) -> None:
    started = command(tmp_path, Start("tiny", 8100, 10_000, extra=("--enforce-eager",)))
    assert started[1:3] == ["-m", "vllm.entrypoints.openai.api_server"]
    assert SCHEDULER in started
    assert started[started.index("--num-gpu-blocks-override") + 1] == "10000"
    assert started[-1] == "--enforce-eager"
    assert "--num-gpu-blocks-override" not in command(tmp_path, Start("tiny"))
    assert started[started.index("--middleware") + 1] == DOOR
    assert "--max-num-queued-reqs" not in started
    limited = command(tmp_path, Start("tiny", queued=128))
    assert limited[limited.index("--max-num-queued-reqs") + 1] == "128"
    assert started[started.index("--load-format") + 1] == "dummy"
    real = command(tmp_path, Start("real", model=tmp_path))
    assert real[real.index("--load-format") + 1] == "auto"
    several = command(tmp_path, Start("tiny", api_servers=4))
    assert several[1:5] == ["-m", "headway_runtime.executors.vllm.serve", "--api-server-count", "4"]
    assert environment(tmp_path, {})["HEADWAY_RUN_DIR"] == str(tmp_path / "run")


def test_an_engine_is_found_and_stopped_by_another_process(tmp_path: Path) -> None:
    assert server.find(tmp_path) is None
    program = "import time; print(flush=True); time.sleep(60)"
    with subprocess.Popen(
        [sys.executable, "-c", program, SCHEDULER],
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        document = {"pid": process.pid, "url": "http://127.0.0.1:1", "shape": "tiny"}
        (tmp_path / server.STATE_FILE).write_text(json.dumps(document))
        found = server.find(tmp_path)
        assert found is not None
        assert found.shape == "tiny"
        server.stop(found)
        assert process.wait(10) == -signal.SIGTERM
    assert server.find(tmp_path) is None


def test_a_process_that_is_no_engine_is_not_taken_for_one(tmp_path: Path) -> None:
    document = {"pid": os.getpid(), "url": "http://127.0.0.1:1", "shape": "tiny"}
    (tmp_path / server.STATE_FILE).write_text(json.dumps(document))
    assert server.find(tmp_path) is None


def test_an_engine_that_ends_while_it_starts_is_told() -> None:
    gone = server.Server(2**22 - 1, "http://127.0.0.1:1", "tiny")
    with pytest.raises(RuntimeError, match="ended"):
        server.wait_until_ready(gone, 5)
