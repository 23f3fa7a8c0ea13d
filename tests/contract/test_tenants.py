"""Tenants take turns in vLLM's own scheduler, whatever waits, is limited, preempted or leaves."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from vllm.v1.request import RequestStatus

from headway_runtime.exchange.step_record import Decision
from headway_runtime.policy import Tenant, TrafficClass, WhenUnmet
from headway_runtime.scheduling.admission.refusal import Board
from headway_runtime.scheduling.origin import Call, Origin
from tests.contract.engines import policy

pytestmark = pytest.mark.filterwarnings("default")

CHAT = TrafficClass("chat", ttft_ms=60_000)
URGENT = TrafficClass("chat", ttft_ms=1)
BATCH = TrafficClass("batch", deadline_s=600)
PROMPT_TOKENS, OUTPUT_TOKENS = 64, 4


class Boards:
    """Remembers the last board."""

    def __init__(self) -> None:
        self.boards: list[Board] = []

    def adopt(self, _: Any) -> None:
        """All classes are asked for."""

    def renew(self, now_s: float, board: Any, *, is_idle: bool) -> None:
        """Write one with every step."""
        assert now_s > 0
        self.boards.append(board())
        self.idle = is_idle


def tenant_of(name: str) -> str:
    return name.partition("-")[0]


def shared(make: Any, *tenants: Tenant, **fields: Any) -> Any:
    """An engine that tells tenants by the names of requests."""
    options = {"classes": (CHAT, BATCH), "fairness_window": 1, **fields}
    blocks = options.pop("blocks", 1000)
    engine = make(policy(tenants=tenants, **options), blocks=blocks)
    origins = engine.scheduler._headway._executor.room.origins
    origins.tells_by(lambda request: Origin(tenant_of(request.request_id)))
    return engine


def send(engine: Any, tenant: str, kind: str | None, count: int, **other: Any) -> None:
    sizes = {"prompt_tokens": PROMPT_TOKENS, "output_tokens": OUTPUT_TOKENS, **other}
    for number in range(count):
        engine.add(f"{tenant}-{kind}-{number}", kind, **sizes)


def turns(engine: Any, first: int) -> Counter[str]:
    """Tenants of those that were admitted first."""
    return Counter(map(tenant_of, engine.admitted[:first]))


def serve(engine: Any) -> None:
    for _ in engine.run():
        assert engine.record.decision == Decision.ACT


def test_who_came_later_does_not_wait_behind_a_flood(make: Any) -> None:
    engine = shared(make)
    send(engine, "heavy", "batch", 60)
    send(engine, "light", "batch", 20)
    serve(engine)
    assert len(engine.admitted) == 80
    assert turns(engine, 40)["light"] >= 17


def test_turns_go_by_weight(make: Any) -> None:
    engine = shared(make, Tenant("small"), Tenant("big", weight=3))
    send(engine, "small", "batch", 60)
    send(engine, "big", "batch", 60)
    serve(engine)
    assert 26 <= turns(engine, 40)["big"] <= 34


def test_one_tenant_alone_is_served_by_deadlines(make: Any) -> None:
    engine = shared(make)
    send(engine, "only", "batch", 30)
    serve(engine)
    assert engine.admitted == [f"only-batch-{number}" for number in range(30)]


@pytest.mark.parametrize("limit", [1, 4])
def test_turns_hold_for_a_class_with_a_limit(make: Any, limit: int) -> None:
    limited = TrafficClass("batch", deadline_s=600, max_running=limit)
    engine = shared(make, classes=(CHAT, limited))
    send(engine, "heavy", "batch", 40)
    send(engine, "light", "batch", 20)
    send(engine, "other", "chat", 2)
    for _ in engine.run():
        kinds = Counter(name.split("-")[1] for name in engine.running)
        assert kinds["batch"] <= limit
    admitted = [name for name in engine.admitted if "batch" in name]
    assert len(admitted) == 60
    assert 8 <= Counter(map(tenant_of, admitted[:20]))["light"] <= 12


def test_calling_everything_urgent_keeps_nobody_from_its_share(make: Any) -> None:
    engine = shared(make)
    send(engine, "liar", "chat", 150)
    send(engine, "honest", "batch", 40)
    serve(engine)
    assert turns(engine, 100)["honest"] >= 30


def test_turns_survive_full_blocks_and_clients_that_leave(make: Any) -> None:
    rng = Random(7)  # noqa: S311 - the same chance every time
    engine = shared(make, blocks=41)
    for step in range(600):
        while len(engine.scheduler.requests) < 30:
            tenant, kind = rng.choice("abc"), rng.choice(["chat", "batch", None])
            engine.add(
                f"{tenant}-{kind}-{step}-{rng.getrandbits(32)}",
                kind,
                prompt_tokens=rng.randint(1, 200),
                output_tokens=rng.randint(1, 60),
            )
        engine.step()
        if rng.random() < 0.1:
            gone = rng.sample(sorted(engine.scheduler.requests), k=2)
            engine.scheduler.finish_requests(gone, RequestStatus.FINISHED_ABORTED)
    serve(engine)
    room = engine.scheduler._headway._executor.room
    assert engine.record.failed_total == 0
    assert sum(
        step.preempted_req_ids is not None and len(step.preempted_req_ids) for step in engine.steps
    )
    assert not room.tenancy._waiting
    assert not list(room.tenancy.shares.waiting)
    assert not room.origins._standings
    assert not room.tenancy.waiting_by_class.total()
    charges = engine.scheduler._headway._executor._work.charges
    assert not charges._decodes
    assert not charges._payers


def test_those_who_let_requests_in_are_told_what_waits(make: Any) -> None:
    shed = TrafficClass("chat", ttft_ms=60_000, when_unmet=WhenUnmet.SHED)
    engine = shared(make, classes=(shed, BATCH))
    keeper = engine.scheduler._headway._executor.board = Boards()
    send(engine, "a", "chat", 40)
    send(engine, "b", "batch", 10)
    engine.step()
    known = keeper.boards[-1].classes
    assert known["chat"].waiting == 40 - sum("chat" in name for name in engine.running)
    assert known["chat"].wait_s > 0
    assert not keeper.idle
    serve(engine)
    assert keeper.idle
    assert keeper.boards[-1].classes["chat"].waiting == 0
    assert keeper.boards[-1].classes["batch"].waiting == 0


def test_who_waits_is_known_anew_when_classes_change(make: Any) -> None:
    engine = shared(make)
    send(engine, "a", "chat", 40)
    send(engine, "b", "chat", 40)
    engine.step()
    engine.publish(policy(2, classes=(TrafficClass("chat", deadline_s=60), BATCH)))
    engine.step()
    tenancy = engine.scheduler._headway._executor.room.tenancy
    assert tenancy.urgent == 0
    assert sum(tenancy.waiting_by_class.values()) == len(engine.waiting)
    serve(engine)
    assert len(engine.admitted) == 80


def test_of_programs_that_wait_the_one_served_least_goes_first(make: Any) -> None:
    engine = shared(make, classes=(), max_batch_size=1)
    engine.scheduler._headway._executor.room.origins.tells_by(
        lambda request: Origin("t", Call(request.request_id.partition("-")[0]))
    )
    for number in range(5):
        engine.add(f"long-{number}", prompt_tokens=1_500, output_tokens=40)
        for _ in engine.run():
            pass
    engine.add("running-1", prompt_tokens=64, output_tokens=20)
    engine.step()
    engine.add("long-5", prompt_tokens=64)
    engine.add("new-1", prompt_tokens=64)
    for _ in engine.run():
        pass
    assert engine.admitted[-2:] == ["new-1", "long-5"]
    programs = engine.scheduler._headway._executor.room.origins.programs
    known = programs.program("t", "long")
    assert known is not None
    assert known.service_tokens == 5 * (1_500 + 2 * 40) + 64 + 2 * OUTPUT_TOKENS
    assert not known.under_way


LIMITED = TrafficClass("limited", deadline_s=600, max_running=1)


def with_a_full_class(make: Any, *others: TrafficClass) -> Any:
    """An engine in which a tenant waits for nothing but room in its class."""
    engine = shared(make, classes=(LIMITED, *others))
    send(engine, "full", "limited", 60, output_tokens=1_500)
    for _ in range(3):
        engine.step()
    return engine


def test_who_waits_for_room_in_its_class_takes_nobodys_turn(make: Any) -> None:
    engine = with_a_full_class(make, BATCH)
    send(engine, "many", "batch", 80, prompt_tokens=128)
    send(engine, "few", "batch", 20, prompt_tokens=128)
    for _ in range(100):
        engine.step()
    others = [name for name in engine.admitted if not name.startswith("full")]
    assert Counter(map(tenant_of, others[:40]))["few"] >= 15


def test_who_waits_for_room_in_its_class_costs_nobody_its_ttft(make: Any) -> None:
    engine = with_a_full_class(make, CHAT)
    for step in range(200):
        for number in range(2):
            engine.add(f"chat-{step}-{number}", "chat", prompt_tokens=64, output_tokens=4)
        engine.step()
    assert not engine.scheduler._headway._executor.room._late


def test_a_session_that_is_closed_waits_no_more(make: Any) -> None:
    engine = shared(make)
    for resumable in (True, False):
        for number in range(5):
            engine.add(f"s-{number}", "batch", prompt_tokens=16, resumable=resumable)
        for _ in range(10):
            engine.step()
    room = engine.scheduler._headway._executor.room
    assert not engine.scheduler.requests
    assert not room.tenancy._waiting
    assert not room.origins._standings


def test_what_fails_with_a_newcomer_costs_its_place_and_not_the_engine(make: Any) -> None:
    engine = shared(make)

    def broken(_: Any) -> Origin:
        raise KeyError("tenant")

    engine.scheduler._headway._executor.room.origins.tells_by(broken)
    send(engine, "a", "batch", 5)
    serve(engine)
    assert len(engine.admitted) == 5
