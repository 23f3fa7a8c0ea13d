"""What the door does with requests that may have killed the engine."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from headway_runtime.door import docket
from headway_runtime.door.docket import MOST_HELD, Trials
from headway_runtime.exchange.refusal_counts import QUARANTINED, read_counts
from headway_runtime.exchange.suspects_file import SuspectsWriter, Told, file_name
from headway_runtime.exchange.trial_lock import FILE_NAME, TrialLock
from headway_runtime.policy import Mode, Policy
from headway_runtime.scheduling.quarantine.suspects import Suspect
from tests.unit.door.asgi_client import CHAT, post
from tests.unit.door.world import HELLO, World, hello, told
from tests.unit.runtime.policies import policy

ACTS = policy()
TRIED, GUILTY = (1, 1), (2, 2)


@pytest.fixture(autouse=True)
def _looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docket, "LOOK_PERIOD_S", 0.0)


def suspect(world: World, counts: tuple[int, int], document: Any = HELLO) -> bytes:
    """The engine tells that it holds so much against a request; its fingerprint."""
    assert world.door._desk is not None
    assert world.door._desk.docket is not None
    found = world.door._desk.docket.prints.of(b"", document)
    writer = SuspectsWriter(world.run_dir / file_name(0))
    writer.write(Told(counts[1], {found: Suspect("t", *counts, time.time() - 30)}))
    writer.close()
    return found


async def all_has_happened() -> None:
    """Everything goes on that can."""
    for _ in range(100):
        await asyncio.sleep(0)


async def test_a_culprit_is_refused_and_told_so(world: World) -> None:
    world.watch.policy = ACTS
    found = suspect(world, GUILTY)
    for asked in (HELLO, {**HELLO, "stream": True}, hello("any")):
        status, headers, body = await post(world.door, asked)
        assert status == 422
        assert b"retry-after" not in headers
        error = json.loads(body)["error"]
        assert error["code"] == 422
        assert "died 2 times" in error["message"]
        assert found.hex() in error["message"]
        assert "14 more minutes" in error["message"]
    assert world.engine.bodies == []
    assert read_counts(world.run_dir) == {QUARANTINED: 3}


async def test_other_requests_are_let_in(world: World) -> None:
    world.watch.policy = ACTS
    suspect(world, GUILTY)
    assert (await post(world.door, {**HELLO, "temperature": 0.5}))[0] == 200


async def test_clients_of_anthropics_api_are_told_in_its_shape(world: World) -> None:
    world.watch.policy = ACTS
    suspect(world, GUILTY)
    status, _, body = await post(world.door, HELLO, "/v1/messages")
    assert status == 422
    assert json.loads(body)["type"] == "error"
    assert json.loads(body)["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("in_force", [None, policy(mode=Mode.SHADOW), policy(mode=Mode.OFF)])
async def test_only_act_refuses(world: World, in_force: Policy | None) -> None:
    world.watch.policy = in_force
    suspect(world, GUILTY)
    assert (await post(world.door, HELLO))[0] == 200


async def test_the_engine_is_told_which_request_it_is(world: World) -> None:
    assert world.door._desk is not None
    assert world.door._desk.docket is not None
    prints = world.door._desk.docket.prints
    await post(world.door, hello(headway_fingerprint="of somebody else", other=1))
    (document,) = world.engine.documents
    stamp = document["vllm_xargs"]["headway_fingerprint"]
    assert prints.read(stamp) == prints.of(b"", hello(other=1))
    assert told(world) == {"other": 1}


async def test_suspects_are_tried_one_at_a_time_and_others_pass(world: World) -> None:
    world.watch.policy = ACTS
    suspect(world, TRIED)
    world.engine.gate.clear()
    other = {"model": "m", "prompt": "x"}
    asked = [asyncio.create_task(post(world.door, each)) for each in (HELLO, HELLO, HELLO, other)]
    await all_has_happened()
    assert len(world.engine.bodies) == 2
    world.engine.gate.set()
    assert [each[0] for each in await asyncio.gather(*asked)] == [200] * 4


async def test_an_engine_that_fails_ends_the_trial(world: World) -> None:
    world.watch.policy = ACTS
    suspect(world, TRIED)
    world.engine.fails = True
    for _ in range(2):
        with pytest.raises(RuntimeError):
            await post(world.door, HELLO)
    assert len(world.engine.bodies) == 2


async def test_whose_turn_does_not_come_is_to_try_again(world: World) -> None:
    world.watch.policy = ACTS
    suspect(world, TRIED)
    world.door._trials = Trials(patience_s=0.01)
    world.engine.gate.clear()
    first = asyncio.create_task(post(world.door, HELLO))
    await all_has_happened()
    assert len(world.engine.bodies) == 1
    for path in (CHAT, "/v1/messages"):
        status, headers, body = await post(world.door, HELLO, path)
        assert (status, headers[b"retry-after"]) == (503, b"10")
        assert b"Suspected" in body
    world.engine.gate.set()
    assert (await first)[0] == 200
    assert (await post(world.door, HELLO))[0] == 200


async def test_only_so_many_wait() -> None:
    trials = Trials()
    assert await trials.begin()
    waiting = [asyncio.create_task(trials.begin()) for _ in range(MOST_HELD)]
    await asyncio.sleep(0)
    assert not await trials.begin()
    for each in waiting:
        each.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    trials.end()
    assert await trials.begin()


async def test_other_api_servers_suspects_are_waited_for(world: World) -> None:
    world.watch.policy = ACTS
    suspect(world, TRIED)
    other = TrialLock(world.run_dir / FILE_NAME)
    assert other.take()
    asked = asyncio.create_task(post(world.door, HELLO))
    assert (await post(world.door, {"model": "m", "prompt": "x"}))[0] == 200
    await all_has_happened()
    assert len(world.engine.bodies) == 1
    other.give_back()
    assert (await asked)[0] == 200
    # It has ended, so the next one of another server is let in.
    assert other.take()
    other.give_back()


async def test_whose_turn_does_not_come_leaves_the_lock_to_others(world: World) -> None:
    world.watch.policy = ACTS
    suspect(world, TRIED)
    other, lock = (TrialLock(world.run_dir / FILE_NAME) for _ in range(2))
    world.door._trials = Trials(lock, patience_s=0.01)
    assert other.take()
    assert (await post(world.door, HELLO))[0] == 503
    other.give_back()
    assert (await post(world.door, HELLO))[0] == 200


async def test_a_lock_that_cannot_be_made_holds_nobody_up(world: World) -> None:
    world.watch.policy = ACTS
    suspect(world, TRIED)
    world.door._trials = Trials(TrialLock(world.run_dir / "missing" / FILE_NAME))
    for _ in range(2):
        assert (await post(world.door, HELLO))[0] == 200
