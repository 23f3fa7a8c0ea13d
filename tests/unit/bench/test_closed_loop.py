"""Requests that wait for others, in the simulator and over HTTP."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.bench import client_pool
from headway_runtime.bench.arms import parse
from headway_runtime.bench.client import Target, body, offer
from headway_runtime.bench.client_pool import ClientPool
from headway_runtime.bench.closed_loop import ClosedLoop, components
from headway_runtime.bench.declared import declaration, headers
from headway_runtime.bench.outcome import Ending, Outcome
from headway_runtime.bench.simulated import SimulatedGpu, simulate
from headway_runtime.bench.workload import Request, Workload
from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.origin import Call
from tests.unit.bench.fake_server import FakeServer, serving

AGENT = TrafficClass("agent")


def request(arrival_s: float = 0.0, *after: int, delay_s: float = 0.0) -> Request:
    return Request(
        arrival_s, "agent", 20, 4, tokens_seed=1, program="p", after=after, delay_s=delay_s
    )


DIAMOND = [request(), request(0.0, 0), request(0.0, 0, delay_s=0.3), request(0.0, 1, 2)]


def test_a_request_is_sent_when_the_last_one_it_waits_for_is_complete() -> None:
    loop = ClosedLoop(DIAMOND)
    assert loop.completed(0, 1.0) == [(1, 1.0), (2, 1.3)]
    assert loop.completed(1, 2.0) == []
    assert loop.completed(2, 5.0) == [(3, 5.0)]


def test_no_request_is_sent_before_its_arrival() -> None:
    assert ClosedLoop([request(), request(7.0, 0)]).completed(0, 1.0) == [(1, 7.0)]


@given(st.lists(st.lists(st.integers(0, 30), max_size=3), max_size=30))
def test_components_are_those_of_the_graph(drawn: list[list[int]]) -> None:
    requests = [
        request(0.0, *{each for each in after if each < index}) for index, after in enumerate(drawn)
    ]
    found = components(requests)
    for index, each in enumerate(requests):
        assert all(found[index] == found[parent] for parent in each.after)
        assert found[index] <= index
        # The name of a component is one of its own.
        assert found[found[index]] == found[index]
    linked = {index for index, each in enumerate(requests) if each.after}
    linked |= {parent for each in requests for parent in each.after}
    assert all(found[index] == index for index in range(len(requests)) if index not in linked)


def simulated(*requests: Request, give_up_s: float = 60.0) -> list[Outcome]:
    workload = Workload((AGENT,), requests, 1.0)
    return simulate(SimulatedGpu(), parse("stock-512-fcfs"), workload, 1, give_up_s).outcomes


def test_a_simulated_client_waits_for_answers() -> None:
    first, quick, slow, last = simulated(*DIAMOND)
    assert quick.sent_s == first.ended_s
    assert slow.sent_s == pytest.approx(first.ended_s + 0.3)
    assert last.sent_s == max(quick.ended_s, slow.ended_s)
    assert {each.ending for each in (first, quick, slow, last)} == {Ending.COMPLETE}


def test_a_simulated_client_sends_nothing_after_what_was_given_up() -> None:
    long = replace(request(), output_tokens=5000)
    first, then = simulated(long, request(0.0, 0), give_up_s=2.0)
    assert (first.ending, then.ending) == (Ending.TIMED_OUT, Ending.UNSENT)
    assert then.latency_s == 0
    assert then.ttft_s is None


async def offered(
    server: FakeServer, sent: list[Request], give_up_s: float = 10.0
) -> list[Outcome]:
    target = Target(server.url, "model", give_up_s)
    bodies = [body(each, target.model) for each in sent]
    return await offer(sent, bodies, target, time.monotonic())


async def test_a_client_waits_for_answers() -> None:
    async with serving(FakeServer(first_s=0.05)) as server:
        first, quick, slow, last = await offered(server, DIAMOND)
    assert quick.sent_s >= first.ended_s
    assert slow.sent_s >= first.ended_s + 0.3 - 0.001
    assert last.sent_s >= max(quick.ended_s, slow.ended_s)
    assert last.planned_s == max(quick.ended_s, slow.ended_s)
    assert last.ending is Ending.COMPLETE
    assert last.program == "p"


async def test_others_are_sent_while_a_program_waits() -> None:
    sent = [request(), request(0.0, 0), request(0.1)]
    async with serving(FakeServer(first_s=0.4)) as server:
        first, _, other = await offered(server, sent)
    assert other.sent_s < first.ended_s


@pytest.mark.parametrize("server", [FakeServer(status=503), FakeServer(status=400)])
async def test_a_client_sends_nothing_after_what_failed(server: FakeServer) -> None:
    async with serving(server):
        first, then, last = await offered(server, [request(), request(0.0, 0), request(0.0, 1)])
    assert first.ending in (Ending.REFUSED, Ending.FAILED)
    assert (then.ending, last.ending) == (Ending.UNSENT, Ending.UNSENT)
    assert len(server.bodies) == 1


async def test_a_client_sends_nothing_after_it_gave_up() -> None:
    async with serving(FakeServer()) as server:
        first, then = await offered(server, [request(), request(5.0, 0)], give_up_s=3.0)
    assert (first.ending, then.ending) == (Ending.COMPLETE, Ending.UNSENT)


async def test_a_request_says_whose_and_what_part_of_a_program_it_is() -> None:
    call = Call("p", "b", ("a",), ("c", "d"), 30.0)
    sent = replace(request(), tenant="acme", call=call)
    async with serving(FakeServer()) as server:
        await offered(server, [sent])
    assert server.bodies[0]["vllm_xargs"] == {
        "headway_class": "agent",
        "headway_program": "p",
        "headway_node": "b",
        "headway_parents": ["a"],
        "headway_children": ["c", "d"],
        "headway_deadline_seconds": 30.0,
    }
    assert server.headers[0]["X-Headway-Tenant"] == "acme"


def test_what_is_not_known_is_not_said() -> None:
    assert declaration(replace(request(), call=Call("p"))) == {
        "headway_class": "agent",
        "headway_program": "p",
    }
    assert headers(request()) == {}


async def test_programs_stay_in_one_client_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_pool, "_SETTLE_S", 0.02)
    sent = [request(), request(), request(0.0, 0), request(0.0, 1), request(0.0, 2)]
    parts = client_pool._parts(sent, 2)
    assert parts == [[0, 2, 4], [1, 3]]
    relinked = client_pool._relinked(sent, parts[0])
    assert [each.after for each in relinked] == [(), (0,), (1,)]


async def test_outcomes_come_in_the_order_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_pool, "_SETTLE_S", 0.02)
    sent = [replace(request(), prompt_tokens=20 + index) for index in range(5)]
    sent[3] = replace(sent[3], after=(0,))
    async with serving(FakeServer()) as server:
        with ClientPool(2) as pool:
            found = await asyncio.to_thread(pool.offer, sent, Target(server.url, "model", 10.0))
    assert [each.prompt_tokens for each in found] == [20, 21, 22, 23, 24]
