"""Whom the door refuses, and how."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from headway_runtime.door.middleware import Door
from headway_runtime.exchange import policy_file, process_files
from headway_runtime.exchange.admission_board import AdmissionBoardWriter, file_name
from headway_runtime.exchange.let_in_file import KIND, LetInRequest, LetInWriter
from headway_runtime.exchange.refusal_counts import read_counts, read_refused_work
from headway_runtime.policy import Mode, encode
from headway_runtime.scheduling.admission.refusal import Board, ClassWait
from headway_runtime.scheduling.timing.forgetting import MEMORY_S
from tests.unit.door.asgi_client import Engine, post
from tests.unit.door.world import (
    HELLO,
    LIMITED,
    SHED,
    World,
    hello,
)
from tests.unit.runtime.policies import policy


async def test_what_comes_too_late_is_refused_before_the_engine_is_asked(world: World) -> None:
    world.watch.policy = LIMITED
    world.waits(7.2)
    status, headers, body = await post(world.door, hello("shed"))
    assert (status, headers[b"retry-after"]) == (503, b"7")
    assert "shed" in json.loads(body)["error"]["message"]
    assert not world.engine.scopes
    assert read_counts(world.run_dir) == {("shed", "ObjectiveUnmet"): 1}


async def test_what_a_refused_request_would_have_been_is_told(world: World) -> None:
    world.watch.policy = LIMITED
    wait = ClassWait(0, 7.2, 7.2)
    work = {"prompt_token_work_s": 0.0, "answer_work_s": 3.0}
    world.board.write(Board(time.time(), 0.0, {"shed": wait, "short": wait}, **work))
    assert (await post(world.door, hello("shed")))[0] == 503
    found = read_refused_work(world.run_dir, time.time())
    assert found == pytest.approx(3.0 / MEMORY_S, rel=0.2)
    assert (await post(world.door, hello("short")))[0] == 200
    assert read_refused_work(world.run_dir, time.time()) <= found


async def test_a_class_that_queues_is_let_in(world: World) -> None:
    world.watch.policy = LIMITED
    world.waits(7.2)
    for document in (HELLO, hello("batch"), hello("unknown"), hello("short")):
        assert (await post(world.door, document))[0] == 200


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.SHADOW])
async def test_nobody_is_refused_unless_the_plan_is_carried_out(world: World, mode: Mode) -> None:
    world.watch.policy = policy(classes=(SHED,), mode=mode)
    world.waits(7.2)
    assert (await post(world.door, hello("shed")))[0] == 200


async def test_without_a_board_everybody_is_let_in(world: World) -> None:
    world.watch.policy = LIMITED
    assert (await post(world.door, hello("shed")))[0] == 200


async def test_a_heavy_tenant_waits_longer(world: World) -> None:
    world.watch.policy = LIMITED
    world.waits(0.1, "acme")
    assert (await post(world.door, hello("shed")))[0] == 200
    assert (await post(world.door, hello("shed"), authorization="Bearer acme-key"))[0] == 503


async def test_clients_of_anthropic_are_refused_in_their_way(world: World) -> None:
    world.watch.policy = LIMITED
    world.waits(7.2)
    _, _, body = await post(world.door, hello("shed"), "/v1/messages")
    assert json.loads(body)["type"] == "error"


async def test_a_burst_that_the_engine_has_not_seen_is_counted(world: World) -> None:
    world.watch.policy = LIMITED
    world.waits(0.1)
    world.engine.gate.clear()
    asked = [asyncio.ensure_future(post(world.door, hello("short"))) for _ in range(3)]
    (refused,) = (await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED))[0]
    assert refused.result()[0] == 503
    world.engine.gate.set()
    await asyncio.wait(asked)
    assert sorted(each.result()[0] for each in asked) == [200, 200, 503]
    # They have ended.
    assert (await post(world.door, hello("short")))[0] == 200


async def test_what_other_api_servers_let_in_is_counted(world: World) -> None:
    world.watch.policy = LIMITED
    world.waits(0.1)
    other = LetInWriter(world.run_dir)
    path = world.run_dir / process_files.file_name(KIND, os.getpid())
    path.replace(world.run_dir / process_files.file_name(KIND, 1))
    for ticket in (1, 2):
        other.enter(ticket, LetInRequest("short", 5, time.time()))
    assert (await post(world.door, hello("short")))[0] == 503
    other.leave(1)
    assert (await post(world.door, hello("short")))[0] == 200
    other.close()


async def test_what_the_engine_tells_of_is_not_counted_twice(world: World) -> None:
    world.watch.policy = LIMITED
    world.waits(0.1)
    world.engine.gate.clear()
    asked = [asyncio.ensure_future(post(world.door, hello("short"))) for _ in range(2)]
    await asyncio.sleep(0)
    world.waits(0.1, later_s=1.0)
    asked.append(asyncio.ensure_future(post(world.door, hello("short"))))
    await asyncio.sleep(0)
    world.engine.gate.set()
    await asyncio.wait(asked)
    assert [each.result()[0] for each in asked] == [200, 200, 200]


async def test_a_request_whose_client_is_gone_counts_no_more(world: World) -> None:
    world.watch.policy = LIMITED
    world.waits(0.1)
    world.engine.gate.clear()
    asked = [asyncio.ensure_future(post(world.door, hello("short"))) for _ in range(2)]
    await asyncio.sleep(0)
    for each in asked:
        each.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    world.engine.gate.set()
    assert (await post(world.door, hello("short")))[0] == 200


async def test_an_error_of_the_application_is_its_own(world: World) -> None:
    world.watch.policy = LIMITED
    world.waits(0.1)
    world.engine.fails = True
    for _ in range(3):
        with pytest.raises(RuntimeError, match="the application's own"):
            await post(world.door, hello("short"))


async def test_where_refusals_cannot_be_counted_requests_are_refused_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("headway_runtime.door.desk.RefusalCounts", full)
    monkeypatch.setattr("headway_runtime.door.desk.LetInWriter", full)
    monkeypatch.setenv("HEADWAY_RUN_DIR", str(tmp_path))
    policy_file.write(tmp_path / policy_file.FILE_NAME, encode(LIMITED))
    board = AdmissionBoardWriter(tmp_path / file_name(0))
    board.write(Board(time.time(), 0.0, {"shed": ClassWait(0, 7.0, 7.0)}))
    assert (await post(Door(Engine()), hello("shed")))[0] == 503
    board.close()
