"""The door as the application behind it sees it."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headway_runtime.door import middleware
from headway_runtime.door.desk import Desk
from headway_runtime.door.middleware import Door
from headway_runtime.exchange import policy_file
from headway_runtime.exchange.tenant_seal import TenantSeal
from headway_runtime.policy import encode
from tests.unit.door.asgi_client import CHAT, Engine, ask, post, scope
from tests.unit.door.world import (
    ACME,
    BATCH,
    HELLO,
    LIMITED,
    PATHS,
    World,
    app_with_keys,
    hello,
    told,
)
from tests.unit.runtime.policies import policy


@pytest.mark.parametrize("prefix", ["", "/prefix"])
@pytest.mark.parametrize("path", PATHS)
async def test_the_engine_is_told_whose_a_request_is(world: World, path: str, prefix: str) -> None:
    world.watch.policy = LIMITED
    body = json.dumps(HELLO).encode()
    headers = {"authorization": "Bearer acme-key", "content-length": str(len(body))}
    status, _, _ = await ask(world.door, scope(prefix + path, headers, root_path=prefix), [body])
    assert status == 200
    assert world.seal.tenant_of(told(world)["headway_tenant"]) == "acme"
    sent = dict(world.engine.scopes[0]["headers"])
    assert int(sent[b"content-length"]) == len(world.engine.bodies[0])
    assert sent[b"authorization"] == b"Bearer acme-key"


async def test_tokens_in_have_it_within_their_sampling_parameters(world: World) -> None:
    world.watch.policy = LIMITED
    document = {"token_ids": [1], "sampling_params": {}}
    await post(world.door, document, "/inference/v1/generate", authorization="Bearer acme-key")
    (found,) = world.engine.documents
    sealed = found["sampling_params"]["extra_args"]["headway_tenant"]
    assert world.seal.tenant_of(sealed) == "acme"


async def test_what_is_said_of_a_request_is_put_in_front_of_its_bytes(world: World) -> None:
    world.watch.policy = LIMITED
    await ask(world.door, scope(headers={"content-length": "19"}), [b'{ "messages" : [] }'])
    (sent,) = world.engine.bodies
    assert sent.startswith(b'{"vllm_xargs":{"headway_fingerprint":"')
    assert sent.endswith(b'"}, "messages" : [] }')
    assert told(world) == {}


async def test_a_body_that_cannot_be_read_keeps_its_bytes(world: World) -> None:
    world.watch.policy = LIMITED
    asked = scope(headers={"content-length": "9"})
    await ask(world.door, asked, [b'["hello"]'])
    assert world.engine.bodies == [b'["hello"]']
    assert world.engine.scopes == [asked]


async def test_a_tenant_that_the_client_wrote_is_taken_out(world: World) -> None:
    await post(world.door, hello(headway_tenant=world.seal.stamped("acme"), other=1))
    assert told(world) == {"other": 1}


@pytest.mark.parametrize("trusted", [True, False])
async def test_headers_get_into_the_body_where_they_are_trusted(
    world: World, trusted: bool
) -> None:
    world.watch.policy = policy(classes=(BATCH,), trust_headers=trusted)
    named = {"tenant": "t", "class": "batch", "program": "p"}
    headers = {f"x_headway_{name}": value for name, value in named.items()}
    await post(world.door, hello("chat"), **headers)
    arguments = told(world)
    sealed = arguments.pop("headway_tenant", None)
    assert world.seal.tenant_of(sealed) == ("t" if trusted else None)
    theirs = {"headway_class": "batch", "headway_program": "p"}
    assert arguments == (theirs if trusted else {"headway_class": "chat"})


async def test_without_a_policy_keys_are_told_apart(world: World) -> None:
    body = json.dumps(HELLO).encode()
    asked = scope(headers={"authorization": "Bearer k"}, app=app_with_keys("k"))
    await ask(world.door, asked, [body])
    tenant = world.seal.tenant_of(told(world)["headway_tenant"])
    assert tenant == "key-" + hashlib.sha256(b"k").hexdigest()[:8]


async def test_a_stranger_is_left_to_the_engine(world: World) -> None:
    world.watch.policy = LIMITED
    world.waits(7.2)
    body = json.dumps(hello("shed")).encode()
    for key, status in (("wrong", 200), ("right", 503)):
        asked = scope(headers={"authorization": f"Bearer {key}"}, app=app_with_keys("right"))
        assert (await ask(world.door, asked, [body]))[0] == status
    assert world.engine.bodies == [body]


async def test_a_body_in_pieces_is_put_together(world: World) -> None:
    world.watch.policy = LIMITED
    body = json.dumps(HELLO).encode()
    asked = scope(headers={"authorization": "Bearer acme-key", "transfer-encoding": "chunked"})
    await ask(world.door, asked, [body[:9], b"", body[9:]])
    assert world.seal.tenant_of(told(world)["headway_tenant"]) == "acme"
    assert world.engine.after == [{"type": "http.disconnect"}]


async def test_a_client_that_goes_away_within_its_body_is_told_to_the_engine(world: World) -> None:
    await ask(world.door, scope(), [b'{"messages"'], gives_up=True)
    assert world.engine.after == [{"type": "http.disconnect"}]


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_that_is_too_long_passes_unread(
    world: World, monkeypatch: pytest.MonkeyPatch, announced: bool
) -> None:
    monkeypatch.setattr(middleware, "MOST_BODY_BYTES", 100)
    world.watch.policy = LIMITED
    world.waits(7.2)
    body = json.dumps(hello("shed", long="x" * 200)).encode()
    headers = {"content-length": str(len(body))} if announced else {}
    status, _, _ = await ask(
        world.door, scope(headers=headers), [body[:60], body[60:120], body[120:]]
    )
    assert status == 200
    assert world.engine.bodies == [body]


@pytest.mark.parametrize("body", [b"no JSON", b"", b"[]", b'{"vllm_xargs": 7}'])
async def test_a_body_that_vllm_will_refuse_passes_as_it_is(world: World, body: bytes) -> None:
    world.watch.policy = LIMITED
    world.waits(7.2)
    await ask(world.door, scope(headers={"authorization": "Bearer acme-key"}), [body])
    assert world.engine.bodies == [body]


@pytest.mark.parametrize(
    "asked",
    [
        scope("/v1/models"),
        scope("/health", method="GET"),
        scope(method="OPTIONS"),
        scope(method="GET"),
        scope("/v1/audio/transcriptions"),
        scope("/other" + CHAT),
        scope("/other" + CHAT, root_path="/prefix"),
        {"type": "lifespan"},
        {"type": "websocket", "path": CHAT, "headers": []},
    ],
    ids=lambda asked: f"{asked['type']} {asked.get('method')} {asked.get('path')}",
)
async def test_everything_else_passes_untouched(world: World, asked: Any) -> None:
    world.watch.policy = LIMITED
    world.waits(7.2)
    body = json.dumps(hello("shed")).encode()
    await ask(world.door, asked, [body])
    assert world.engine.scopes[0] is asked
    assert world.engine.bodies in ([], [body])


@pytest.mark.parametrize("broken", ["consider", "stranger"])
async def test_a_fault_of_the_door_costs_no_request_and_is_told_once_without_content(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, broken: str
) -> None:
    def fault(*_: object, **__: object) -> None:
        raise KeyError("what a client has written")

    monkeypatch.setattr(Desk, broken, fault)
    with caplog.at_level(logging.DEBUG):
        for _ in range(3):
            assert (await post(world.door, hello("shed")))[0] == 200
    assert world.engine.documents == [hello("shed")] * 3
    (record,) = caplog.records
    assert "KeyError at test_middleware.py" in record.getMessage()
    assert "what a client" not in caplog.text


@pytest.mark.parametrize("run_dir", [None, "missing", "seal"])
async def test_without_a_run_directory_everything_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_dir: str | None
) -> None:
    monkeypatch.delenv("HEADWAY_RUN_DIR", raising=False)
    if run_dir is not None:
        monkeypatch.setenv("HEADWAY_RUN_DIR", str(tmp_path / run_dir))
    if run_dir == "seal":
        (tmp_path / run_dir).mkdir()
        (tmp_path / run_dir / "seal").write_bytes(b"torn")
    engine = Engine()
    await post(Door(engine), hello("shed"), authorization="Bearer acme-key")
    assert engine.documents == [hello("shed")]


async def test_the_policy_that_the_sidecar_writes_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_RUN_DIR", str(tmp_path))
    engine = Engine()
    door = Door(engine)
    for counter, name in enumerate(("acme", "renamed")):
        renamed = replace(ACME, name=name)
        written = policy(1, 1, counter, classes=(BATCH,), tenants=(renamed,))
        policy_file.write(tmp_path / policy_file.FILE_NAME, encode(written))
        await post(door, HELLO, authorization="Bearer acme-key")
    # A file that cannot be used leaves the policy as it is.
    (tmp_path / policy_file.FILE_NAME).write_bytes(b"foreign")
    await post(door, HELLO, authorization="Bearer acme-key")
    seal = TenantSeal.of_run(tmp_path)
    sealed = [each["vllm_xargs"]["headway_tenant"] for each in engine.documents]
    assert [seal.tenant_of(each) for each in sealed] == ["acme", "renamed", "renamed"]
