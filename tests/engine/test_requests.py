"""A real engine tells why a request was slow, whose it is, and puts it on its client's trace."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e.waiting import wait_until
from tests.engine.asking import Answer
from tests.engine.collector import Collector, Span
from tests.engine.pod import Pod
from tests.engine.sharing import KEYS, digest, key, policy

CHUNK = 64
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
UNHEARD_OF = "xylophonist"


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


def tokens(first: int, count: int) -> list[int]:
    """A prompt that shares no prefix with those that begin elsewhere."""
    return [1000 + (first * 1009 + place) % 30_000 for place in range(count)]


def wanted(prompt: Any, output_tokens: int, **other: Any) -> dict[str, Any]:
    return {"prompt": prompt, "max_tokens": output_tokens, "ignore_eos": True, **other}


def named(name: str, tenant: str = "many", **headers: str) -> dict[str, str]:
    return {"X-Request-Id": name, **key(tenant), **headers}


def of_class(name: str) -> dict[str, Any]:
    return {"vllm_xargs": {"headway_class": name}}


def until_there_are(pod: Pod, state: str, count: int) -> None:
    """Wait until so many requests run, or wait."""
    metric = (f"headway_{state}_requests",)
    wait_until(
        lambda: pod.metrics()[metric],
        lambda found: found >= count,
        timeout_s=60,
        what=f"{count} {state} requests",
        period_s=0.05,
    )


def test_a_request_that_waited_tells_for_whom_and_one_in_parts_in_how_many(
    pod: Pod, threads: ThreadPoolExecutor
) -> None:
    pod.push(policy(max_batch_size=1, token_budget=CHUNK))
    long = threads.submit(pod.ask, wanted(tokens(1, 900), 4), named("long"))
    until_there_are(pod, "running", 1)
    pod.ask(wanted(tokens(2, 16), 2, **of_class("interactive")), named("short", "few"))
    assert long.result().status == 200

    told = pod.request("long")
    assert (told["tenant"], told["class"], told["state"]) == ("many", "batch", "Finished")
    assert told["tokens"] == {"prompt": 900, "cached": 0, "output": 4, "recomputed": 0}
    assert told["chunks"]["tokens"] == 900
    assert told["chunks"]["largest"] <= CHUNK
    assert told["chunks"]["count"] >= 900 // CHUNK

    told = pod.request("short")
    assert (told["tenant"], told["class"]) == ("few", "interactive")
    assert told["waitedSteps"] > 0
    assert told["seconds"]["waiting"] > told["seconds"]["prefilling"]
    [went_first] = told["yielded"]["to"]
    assert (went_first["class"], went_first["tenant"]) == ("batch", "many")
    assert 0 < went_first["promptTokens"] == told["yielded"]["promptTokens"] < 900
    [why] = [each for each in told["explanation"] if "waiting to be admitted" in each]
    assert "of class batch (tenant many)" in why


def test_a_request_that_lost_its_blocks_tells_what_that_cost(
    pod: Pod, threads: ThreadPoolExecutor
) -> None:
    pod.push(policy())
    # Four blocks of 128 tokens each, and a fifth after 62 more: there are eight.
    both = [
        threads.submit(pod.ask, wanted(tokens(number, 450), 90), named(f"preempted-{number}"))
        for number in (3, 4)
    ]
    assert [each.result().status for each in both] == [200, 200]
    told = [pod.request(f"preempted-{number}") for number in (3, 4)]
    [loser] = [each for each in told if each["preemptions"]]
    assert loser["tokens"]["recomputed"] > 0
    assert loser["seconds"]["preempted"] > 0
    assert loser["state"] == "Finished"
    assert any("lost its KV blocks 1 time" in each for each in loser["explanation"])


def test_tenants_are_known_by_their_keys(pod: Pod) -> None:
    pod.push(policy())
    tenants = {}
    for name in KEYS:
        assert pod.ask(wanted("Hello", 1), named(f"of-{name}", name)).status == 200
        tenants[name] = pod.request(f"of-{name}")["tenant"]
    unlisted = f"key-{digest(KEYS['unlisted'])[:8]}"
    assert tenants == {"many": "many", "few": "few", "unlisted": unlisted}
    wrong = {"X-Request-Id": "stranger", "Authorization": "Bearer key-of-a-stranger"}
    assert pod.ask(wanted("Hello", 1), wrong).status == 401
    assert pod.told(1, "/requests/stranger").status == 404


@pytest.mark.parametrize("trusted", [True, False])
def test_headers_count_only_where_they_are_trusted(pod: Pod, trusted: bool) -> None:
    pod.push(policy(trust_headers=trusted))
    name = f"headers-{trusted}"
    headers = {"X-Headway-Tenant": "team-a", "X-Headway-Class": "interactive"}
    assert pod.ask(wanted("Hello", 1), named(name, **headers)).status == 200
    told = pod.request(name)
    expected = ("team-a", "interactive") if trusted else ("many", "batch")
    assert (told["tenant"], told["class"]) == expected


def in_body(program: str) -> tuple[dict[str, Any], dict[str, str]]:
    return {"vllm_xargs": {"headway_program": program}}, {}


def in_header(program: str) -> tuple[dict[str, Any], dict[str, str]]:
    return {}, {"X-Headway-Program": program}


def in_session(program: str) -> tuple[dict[str, Any], dict[str, str]]:
    return {}, {"X-Session-ID": program}


@pytest.mark.parametrize(
    ("declared", "trusted", "is_known"),
    [
        (in_body, False, True),
        (in_header, True, True),
        (in_header, False, False),
        (in_session, False, True),
    ],
)
def test_a_call_of_a_program_that_has_begun_goes_before_one_of_a_new_program(
    pod: Pod, threads: ThreadPoolExecutor, declared: Any, trusted: bool, is_known: bool
) -> None:
    pod.push(policy(trust_headers=trusted, max_batch_size=1))
    case = f"{declared.__name__}-{trusted}"

    def call(program: str, name: str) -> Answer:
        body, headers = declared(f"{case}-{program}")
        return pod.ask(wanted("Hello", 1, **body), named(f"{case}-{name}", **headers))

    assert call("begun", "before").status == 200
    calls: list[Future[Answer]] = []
    with pod.asking(wanted("Hello", 900), key("many")):
        for waiting, program in enumerate(("new", "begun"), start=1):
            calls.append(threads.submit(call, program, program))
            until_there_are(pod, "waiting", waiting)
    assert [each.result().status for each in calls] == [200, 200]
    told = {name: pod.request(f"{case}-{name}") for name in ("new", "begun")}
    admitted = {name: each["arrived"] + each["admittedAfterSeconds"] for name, each in told.items()}
    assert told["new"]["arrived"] < told["begun"]["arrived"]
    assert (admitted["begun"] < admitted["new"]) is is_known


def spans_of(collector: Collector, name: str) -> list[Span]:
    return [
        each
        for each in list(collector.spans)
        if f"-{name}-" in str(each.attributes.get("headway.request_id"))
    ]


def test_a_traced_request_has_its_span_at_the_collector(pod: Pod, collector: Collector) -> None:
    pod.push(policy())
    prompt = f"The {UNHEARD_OF} plays. "
    assert pod.ask(wanted(prompt, 2), named("untraced")).status == 200
    traceparent = f"00-{TRACE}-{PARENT}-01"
    traced = named("traced", "few", traceparent=traceparent)
    assert pod.ask(wanted(prompt, 3, **of_class("interactive")), traced).status == 200
    told = pod.request("traced")
    [span] = wait_until(
        lambda: spans_of(collector, "traced"), bool, timeout_s=30, what="the span of a request"
    )
    assert (span.name, span.trace, span.parent) == ("headway_request", TRACE, PARENT)
    assert span.attributes["headway.request_id"] == told["id"]
    assert span.attributes["headway.class"] == "interactive"
    assert span.attributes["headway.tenant"] == "few"
    assert span.attributes["headway.state"] == "finished"
    assert span.attributes["headway.explanation"] == " ".join(told["explanation"])
    assert (span.ended_ns - span.began_ns) / 1e9 == pytest.approx(
        told["endedAfterSeconds"], abs=0.001
    )
    # Beside vLLM's own, of the same parent.
    wait_until(
        lambda: [
            each.parent
            for each in list(collector.spans)
            if each.name == "llm_request" and each.trace == TRACE
        ],
        lambda parents: parents == [PARENT],
        timeout_s=30,
        what="vLLM's span",
    )
    assert spans_of(collector, "untraced") == []


def test_nothing_of_prompts_or_keys_leaves_the_engine(pod: Pod, collector: Collector) -> None:
    forbidden = [UNHEARD_OF.encode(), *(each.encode() for each in KEYS.values())]
    assert collector.raw
    told = [pod.told(1, "/requests?slowest=100").document, pod.told(2, "/metrics").document]
    written = [*collector.raw, *(str(each).encode() for each in told)]
    written += [each.read_bytes() for each in pod.run_dir.iterdir() if each.is_file()]
    assert [text for text in forbidden if any(text in each for each in written)] == []


def test_metrics_tell_what_each_tenant_got(pod: Pod) -> None:
    pod.push(policy())
    before = pod.metrics()
    assert pod.ask(wanted(tokens(7, 40), 5), named("counted", "few")).status == 200
    pod.request("counted")

    def grown() -> dict[tuple[str, ...], float]:
        return {
            key: value - before.get(key, 0.0)
            for key, value in pod.metrics().items()
            if key[0].startswith("headway_tenant_") and value != before.get(key, 0.0)
        }

    found = wait_until(grown, bool, timeout_s=30, what="more of a tenant")
    assert found == {
        ("headway_tenant_requests_total", "few"): 1,
        ("headway_tenant_attained_requests_total", "few"): 1,
        ("headway_tenant_tokens_total", "Prompt", "few"): 40,
        ("headway_tenant_tokens_total", "Generated", "few"): 5,
    }
