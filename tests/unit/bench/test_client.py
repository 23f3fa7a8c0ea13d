from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from headway_runtime.bench.client import Target, body, offer
from headway_runtime.bench.outcome import Ending, Outcome
from headway_runtime.bench.prompts import prompt_token_ids
from headway_runtime.bench.workload import Request
from tests.unit.bench.fake_server import FakeServer, serving


def requests(*arrival_s: float, output_tokens: int = 4) -> list[Request]:
    return [
        Request(time_s, "chat", 20, output_tokens, tokens_seed=index)
        for index, time_s in enumerate(arrival_s)
    ]


async def offered(
    server: FakeServer, sent: Sequence[Request], give_up_s: float = 10.0
) -> list[Outcome]:
    target = Target(server.url, "model", give_up_s)
    bodies = [body(each, target.model) for each in sent]
    return await offer(sent, bodies, target, time.monotonic())


async def test_requests_say_what_they_are() -> None:
    (sent,) = requests(0.0)
    async with serving(FakeServer()) as server:
        await offered(server, [sent])
    (got,) = server.bodies
    assert got["prompt"] == prompt_token_ids(sent)
    assert (got["max_tokens"], got["ignore_eos"], got["stream"]) == (4, True, True)
    assert got["vllm_xargs"] == {"headway_class": "chat"}


async def test_tokens_are_stamped_as_they_come() -> None:
    async with serving(FakeServer(first_s=0.05, gap_s=0.1)) as server:
        (outcome,) = await offered(server, requests(0.0))
    assert outcome.ending is Ending.COMPLETE
    assert len(outcome.token_s) == 4
    assert outcome.ttft_s is not None
    assert outcome.ttft_s >= 0.05
    assert list(outcome.token_s) == sorted(outcome.token_s)
    # A client that is held up reads some of them together, but hardly all.
    assert outcome.token_s[-1] - outcome.token_s[0] >= 0.05
    assert outcome.ended_s >= outcome.token_s[-1]


async def test_tokens_that_come_together_are_all_counted() -> None:
    async with serving(FakeServer(tokens_per_chunk=3, gap_s=0.02)) as server:
        (outcome,) = await offered(server, requests(0.0, output_tokens=7))
    assert outcome.ending is Ending.COMPLETE
    assert [outcome.token_s.count(time_s) for time_s in dict.fromkeys(outcome.token_s)] == [3, 3, 1]


async def test_nobody_waits_for_an_answer_before_sending() -> None:
    async with serving(FakeServer(first_s=0.5)) as server:
        outcomes = await offered(server, requests(0.0, 0.05, 0.1))
    sent_s = [each.sent_s for each in outcomes]
    assert all(each.sent_s >= each.planned_s - 0.001 for each in outcomes)
    assert sent_s[-1] < outcomes[0].token_s[0]


@pytest.mark.parametrize("status", [429, 503])
async def test_refused_requests_are_results(status: int) -> None:
    async with serving(FakeServer(status=status)) as server:
        (outcome,) = await offered(server, requests(0.0))
    assert (outcome.ending, outcome.detail) == (Ending.REFUSED, f"HTTP {status}")


async def test_requests_that_are_refused_in_a_stream_are_too() -> None:
    async with serving(FakeServer(error_after=0, error_code=503)) as server:
        (outcome,) = await offered(server, requests(0.0))
    assert (outcome.ending, outcome.detail) == (Ending.REFUSED, "503 in a stream")


@pytest.mark.parametrize(
    ("server", "tokens", "detail"),
    [
        (FakeServer(status=400), 0, "HTTP 400"),
        (FakeServer(missing=1), 3, "1 tokens are missing"),
        (FakeServer(error_after=2), 2, "broken"),
        (FakeServer(error_after=2, error_code=503), 2, "broken"),
    ],
)
async def test_failed_requests_are_results(server: FakeServer, tokens: int, detail: str) -> None:
    async with serving(server):
        (outcome,) = await offered(server, requests(0.0))
    assert outcome.ending is Ending.FAILED
    assert len(outcome.token_s) == tokens
    assert detail in outcome.detail


async def test_a_server_that_is_not_there_is_a_result() -> None:
    async with serving(FakeServer()) as server:
        pass
    (outcome,) = await offered(server, requests(0.0))
    assert outcome.ending is Ending.FAILED
    assert "ClientConnectorError" in outcome.detail


async def test_requests_are_given_up_with_what_they_have() -> None:
    async with serving(FakeServer(hang_after=2)) as server:
        first, late = await offered(server, requests(0.0, 0.2), give_up_s=3.0)
    assert (first.ending, late.ending) == (Ending.TIMED_OUT, Ending.TIMED_OUT)
    assert len(first.token_s) == 2
    assert first.ended_s >= 3.0
