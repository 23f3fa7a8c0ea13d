from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from headway_operator.act.actor import Actor
from headway_operator.act.apply import Applier
from headway_operator.act.events import EventRecorder
from headway_operator.act.lease import NotLeaderError
from headway_operator.act.push import PolicyPusher
from headway_operator.act.signing import CURRENT, PREVIOUS, KeyRing, SigningKeyError
from headway_operator.act.status import StatusWriter
from headway_operator.api.degradation import Step
from headway_operator.api.status import TakenStep
from headway_operator.decide import Notice, decide
from headway_operator.memory.memory import Memory
from headway_operator.memory.shortage import Shortage, ShortageWatch, Timing
from headway_operator.observe.sidecar_client import SidecarClient
from headway_operator.observe.sidecars import Outcome, SidecarReport, Sidecars
from headway_runtime.policy import Policy, Scope, SignedPolicy, Stamp, decode
from tests.unit.operator.fakes import FakeCluster, FakeSidecar, api_error
from tests.unit.operator.samples import NOW, UID, later, ready_pod, service, snapshot

POLICY = Policy(Scope(UID), Stamp(3, 2, 1))
POD = replace(ready_pod(), ip="127.0.0.1")


class Leading:
    """Leadership that a test decides about."""

    def __init__(self) -> None:
        self.epoch: int | None = 2

    def require(self) -> None:
        if self.epoch is None:
            raise NotLeaderError


def write_key(path: Path) -> Ed25519PrivateKey:
    key = Ed25519PrivateKey.generate()
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return key


@pytest.fixture
def keys(tmp_path: Path) -> KeyRing:
    write_key(tmp_path / CURRENT)
    return KeyRing(tmp_path)


@pytest.fixture
def leading() -> Leading:
    return Leading()


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


def pusher(client: SidecarClient, keys: KeyRing, leading: Any, sidecars: Sidecars) -> PolicyPusher:
    return PolicyPusher(client, keys, leading, sidecars)


# --- signing


def test_signature_verifies_over_exactly_the_payload(keys: KeyRing) -> None:
    (signed,) = keys.sign(POLICY)
    (public,) = keys.public_keys()
    Ed25519PublicKey.from_public_bytes(public.raw).verify(signed.signature, signed.payload)
    assert decode(signed.payload) == POLICY
    assert signed.key_id == public.key_id
    assert len(public.key_id) == 16


def test_both_keys_are_published_while_keys_are_rotated(tmp_path: Path, keys: KeyRing) -> None:
    (tmp_path / CURRENT).rename(tmp_path / PREVIOUS)
    write_key(tmp_path / CURRENT)
    old = keys.public_keys()
    keys.reload()
    assert len(keys.public_keys()) == 2
    assert set(old) < set(keys.public_keys())
    assert [each.key_id for each in keys.sign(POLICY)][1] == old[0].key_id


def test_missing_key_names_the_file_and_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(SigningKeyError, match=r"current\.pem.*mount"):
        KeyRing(tmp_path)


def test_other_kinds_of_keys_are_refused(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for content in (b"junk", pem):
        (tmp_path / CURRENT).write_bytes(content)
        with pytest.raises(SigningKeyError, match="openssl genpkey"):
            KeyRing(tmp_path)


def test_unusable_new_key_leaves_the_old_one(tmp_path: Path, keys: KeyRing) -> None:
    old = keys.public_keys()
    (tmp_path / CURRENT).write_bytes(b"junk")
    with pytest.raises(SigningKeyError):
        keys.reload()
    assert keys.public_keys() == old


# --- push


async def push_to(sidecar: FakeSidecar, keys: KeyRing, leading: Leading) -> tuple[bool, Any]:
    sidecars, client = Sidecars(), SidecarClient(sidecar.port)
    try:
        news = await pusher(client, keys, leading, sidecars).push(POLICY, [POD])
    finally:
        await client.close()
    return news, sidecars.report(POD.uid)


async def test_accepted_policy_is_noted(keys: KeyRing, leading: Leading) -> None:
    async with FakeSidecar({"stamp": "3.2.1", "outcome": "Applied"}) as sidecar:
        news, report = await push_to(sidecar, keys, leading)
    assert news
    assert report == SidecarReport(Stamp(3, 2, 1))
    envelope = SignedPolicy.from_json(sidecar.received[0])
    assert decode(envelope.payload) == POLICY


@pytest.mark.parametrize(
    ("answer", "refusal"),
    [
        ({"outcome": "BadSignature"}, Outcome.BAD_SIGNATURE),
        ({"outcome": "WrongScope"}, Outcome.WRONG_SCOPE),
        ({"outcome": "from elsewhere"}, Outcome.UNEXPECTED),
        ([], Outcome.UNREACHABLE),
        ("<html>", Outcome.UNREACHABLE),
    ],
)
async def test_refused_policy_is_noted(
    answer: Any, refusal: Outcome, keys: KeyRing, leading: Leading
) -> None:
    async with FakeSidecar([answer] if answer == [] else answer, status=400) as sidecar:
        _, report = await push_to(sidecar, keys, leading)
    assert report == SidecarReport(refusal=refusal)


async def test_unreachable_sidecar_is_news_once(keys: KeyRing, leading: Leading) -> None:
    async with FakeSidecar({}) as sidecar:
        port = sidecar.port
    sidecars, client = Sidecars(), SidecarClient(port)
    pushing = pusher(client, keys, leading, sidecars)
    assert [await pushing.push(POLICY, [POD]) for _ in range(2)] == [True, False]
    assert sidecars.report(POD.uid).refusal is Outcome.UNREACHABLE
    await client.close()


async def test_previous_key_is_tried_where_the_new_one_is_unknown(
    tmp_path: Path, keys: KeyRing, leading: Leading
) -> None:
    (tmp_path / CURRENT).rename(tmp_path / PREVIOUS)
    write_key(tmp_path / CURRENT)
    keys.reload()
    answers = [{"outcome": "UnknownKey"}, {"outcome": "Applied", "stamp": "3.2.1"}]
    async with FakeSidecar(answers) as sidecar:
        _, report = await push_to(sidecar, keys, leading)
    assert report == SidecarReport(Stamp(3, 2, 1))
    used = [SignedPolicy.from_json(each).key_id for each in sidecar.received]
    assert used == [each.public.key_id for each in keys.keys]


async def test_sidecar_that_claims_to_hold_another_policy_has_not_accepted_ours(
    keys: KeyRing, leading: Leading
) -> None:
    async with FakeSidecar({"outcome": "Applied", "stamp": "9.9.9"}) as sidecar:
        _, report = await push_to(sidecar, keys, leading)
    assert report.refusal is Outcome.UNEXPECTED


async def test_ever_new_refusals_are_news_once(keys: KeyRing, leading: Leading) -> None:
    answers = [{"outcome": "Outdated", "stamp": f"3.9.{at}"} for at in range(3)]
    async with FakeSidecar([*answers, {"outcome": "BadFormat"}], status=409) as sidecar:
        client = SidecarClient(sidecar.port)
        pushing = pusher(client, keys, leading, Sidecars())
        news = [await pushing.push(POLICY, [POD]) for _ in range(4)]
        await client.close()
    assert news == [True, False, False, False]


async def test_answer_in_pieces_is_read_whole() -> None:
    async with FakeSidecar({"stamp": "3.2.1", "filler": "x" * 40_000}, pieces=3) as sidecar:
        client = SidecarClient(sidecar.port)
        answer = await client.status(POD)
        await client.close()
    assert answer is not None
    assert answer["stamp"] == "3.2.1"


async def test_redirections_are_not_followed(keys: KeyRing, leading: Leading) -> None:
    async with FakeSidecar({"outcome": "Applied", "stamp": "3.2.1"}) as elsewhere:
        target = f"http://127.0.0.1:{elsewhere.port}/v1/policy"
        async with FakeSidecar({}, status=307, headers={"Location": target}) as sidecar:
            _, report = await push_to(sidecar, keys, leading)
    assert elsewhere.received == []
    assert report.refusal is Outcome.UNEXPECTED


async def test_who_does_not_lead_pushes_nothing(keys: KeyRing, leading: Leading) -> None:
    leading.epoch = None
    async with FakeSidecar({}) as sidecar:
        with pytest.raises(NotLeaderError):
            await push_to(sidecar, keys, leading)
    assert sidecar.received == []


# --- apply, status, events


async def test_applied_object_is_seen_at_once(cluster: FakeCluster, leading: Leading) -> None:
    memory, record = Memory(), service()
    applier = Applier(cluster, leading, memory)  # type: ignore[arg-type]
    for application in decide(snapshot(children={}), NOW).applications:
        await applier.apply(record, application, NOW)
    assert memory.children.latest(("Deployment", record.key), None) is not None
    assert [kind for _, kind in cluster.writes][-1] == "Deployment"


async def test_refusal_is_remembered_with_the_fields_but_no_text(
    cluster: FakeCluster, leading: Leading
) -> None:
    memory, record = Memory(), service()
    applier = Applier(cluster, leading, memory)  # type: ignore[arg-type]
    application = decide(snapshot(children={}), NOW).applications[-1]
    causes = [{"field": "spec.template.spec.containers[0].image"}, {"field": "se cret"}]
    body = {
        "message": "secret .spec.x: field not declared in schema",
        "details": {"causes": causes},
    }
    cluster.fails = [api_error(422, body)]
    assert await applier.apply(record, application, NOW)
    (refusal,) = memory.of(record).refusals.values()
    assert refusal.fields == ("spec.template.spec.containers[0].image", "spec.x")
    assert await applier.apply(record, application, later(60))
    assert memory.of(record).refusals == {}


async def test_object_that_does_not_fit_its_schema_is_a_refusal(
    cluster: FakeCluster, leading: Leading
) -> None:
    memory, record = Memory(), service()
    text = (
        "failed to create typed patch object (team/demo; apps/v1, Kind=Deployment): "
        ".spec.template.spec.affinity.nope: field not declared in schema"
    )
    cluster.fails = [api_error(500, {"message": text})]
    applier = Applier(cluster, leading, memory)  # type: ignore[arg-type]
    await applier.apply(record, decide(snapshot(children={}), NOW).applications[-1], NOW)
    (refusal,) = memory.of(record).refusals.values()
    assert refusal.fields == ("spec.template.spec.affinity.nope",)


async def test_trouble_of_the_api_server_is_no_refusal(
    cluster: FakeCluster, leading: Leading
) -> None:
    memory, record = Memory(), service()
    cluster.fails = [api_error(500)]
    application = decide(snapshot(children={}), NOW).applications[0]
    applier = Applier(cluster, leading, memory)  # type: ignore[arg-type]
    with pytest.raises(Exception, match="500"):
        await applier.apply(record, application, NOW)
    assert memory.of(record).refusals == {}


@pytest.mark.parametrize("status", [404, 409])
async def test_status_of_a_service_that_is_gone_is_dropped(
    status: int, cluster: FakeCluster, leading: Leading
) -> None:
    cluster.fails = [api_error(status)]
    writer = StatusWriter(cluster, leading, Memory())  # type: ignore[arg-type]
    await writer.write(service(), decide(snapshot(), NOW).status)
    assert cluster.writes == []


async def test_repeated_event_raises_the_count(cluster: FakeCluster, leading: Leading) -> None:
    recorder = EventRecorder(cluster, leading, "me")  # type: ignore[arg-type]
    notice = Notice(warning=True, reason="OOMKilled", message="m")
    for seconds in range(3):
        await recorder.emit(service(), notice, later(seconds))
    (event,) = cluster.objects.values()
    assert (event["count"], event["type"], event["reason"]) == (3, "Warning", "OOMKilled")
    assert event["lastTimestamp"] == later(2).text


async def test_event_that_cannot_be_written_stops_nothing(
    cluster: FakeCluster, leading: Leading, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = EventRecorder(cluster, leading, "me")  # type: ignore[arg-type]
    notice = Notice(warning=False, reason="Applied", message="m")
    cluster.fails = [api_error(403, {"message": "quotes an object"})]
    await recorder.emit(service(), notice, NOW)
    await recorder.emit(service(), notice, NOW)
    assert cluster.writes == [("create", "Event")]
    assert "ForbiddenError" in caplog.text
    assert "quotes an object" not in caplog.text


def acting(
    cluster: FakeCluster, leading: Leading, keys: KeyRing, memory: Memory, client: SidecarClient
) -> Actor:
    return Actor(
        Applier(cluster, leading, memory),  # type: ignore[arg-type]
        pusher(client, keys, leading, memory.sidecars),
        StatusWriter(cluster, leading, memory),  # type: ignore[arg-type]
        EventRecorder(cluster, leading, "me"),  # type: ignore[arg-type]
        memory,
    )


async def test_for_how_long_something_is_short_is_kept_until_the_status_has_the_step(
    cluster: FakeCluster, leading: Leading, keys: KeyRing
) -> None:
    memory, client = Memory(), SidecarClient(1)
    actor = acting(cluster, leading, keys, memory, client)
    before = snapshot(None, POD)
    plan = replace(decide(before, NOW), applications=(), recipients=(), notices=())
    short = ShortageWatch(7, {Shortage.ROOM: Timing(short_since=NOW.unix)})
    await actor.carry_out(before, replace(plan, shortages=short), NOW)
    assert memory.of(before.service).shortages == short
    step = TakenStep(step=Step.FEWER_REPLICAS, reason="InsufficientGPU", since=NOW.text)
    status = plan.status.model_copy(update={"degradation": (step,)})
    taken = replace(plan, shortages=ShortageWatch(7), status=status, status_changed=True)
    cluster.fails = [api_error(503)]
    with pytest.raises(Exception, match="503"):
        await actor.carry_out(before, taken, NOW)
    assert memory.of(before.service).shortages == short
    await actor.carry_out(before, taken, NOW)
    assert memory.of(before.service).shortages == ShortageWatch(7)
    await client.close()


async def test_what_is_applied_is_told_once_the_api_server_has_taken_it(
    cluster: FakeCluster, leading: Leading, keys: KeyRing
) -> None:
    memory, client = Memory(), SidecarClient(1)
    actor = acting(cluster, leading, keys, memory, client)
    before = snapshot(children={})
    plan = replace(decide(before, NOW), notices=(), status_changed=False)
    first, *others = plan.applications

    def events() -> list[tuple[str, str]]:
        told = [each for (kind, *_), each in cluster.objects.items() if kind == "Event"]
        return [(each["reason"], each["message"]) for each in told]

    for _ in range(3):  # as it is tried again every minute
        cluster.fails = [api_error(422)]
        await actor.carry_out(before, replace(plan, applications=(first,)), NOW)
    assert events() == []
    cluster.fails = [api_error(422)]
    await actor.carry_out(before, plan, NOW)
    taken = ", ".join(each.slot for each in others)
    assert events() == [("Applied", f"Applied {taken}")]
    await actor.carry_out(before, replace(plan, applications=(first,)), NOW)
    assert events()[1:] == [("Applied", f"Applied {first.slot}")]
    await client.close()


async def test_pods_get_their_policy_also_while_the_api_server_is_in_trouble(
    cluster: FakeCluster, leading: Leading, keys: KeyRing
) -> None:
    async with FakeSidecar({"stamp": "1.7.1", "outcome": "Applied"}) as sidecar:
        memory, client = Memory(), SidecarClient(sidecar.port)
        actor = acting(cluster, leading, keys, memory, client)
        before = snapshot(None, POD, children={})
        plan = decide(before, NOW)
        cluster.fails = [api_error(503)]
        with pytest.raises(Exception, match="503"):
            await actor.carry_out(before, plan, NOW)
        assert memory.sidecars.report(POD.uid).stamp == Stamp(1, 7, 1)
        assert cluster.writes == []
        assert await actor.carry_out(before, replace(plan, recipients=()), NOW) is False
        assert memory.of(before.service).published == plan.published
        await client.close()
    assert ("apply", "InferenceService/status") in cluster.writes
    assert ("create", "Event") in cluster.writes
