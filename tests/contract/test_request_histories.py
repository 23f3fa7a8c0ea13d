"""What vLLM's scheduler tells of each request, and that histories of them can be believed."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from vllm import tracing
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.request import RequestStatus

from headway_runtime.exchange.history_file import Header, Histories, file_name
from headway_runtime.executors.vllm.request_spans import SPAN_NAME
from headway_runtime.policy import Mode, TrafficClass
from headway_runtime.scheduling.history.lifecycle import State
from headway_runtime.scheduling.history.summary import RequestSummary
from tests.contract.engines import policy

pytestmark = pytest.mark.filterwarnings("default")

CHAT = TrafficClass("chat", ttft_ms=600_000)
BATCH = TrafficClass("batch", deadline_s=60)
CLASSES = (CHAT, BATCH)
TRACE_ID = 0x0AF7651916CD43DD8448EB211C80319C
PARENT_ID = 0xB7AD6B7169203331
HEADERS = {"traceparent": f"00-{TRACE_ID:032x}-{PARENT_ID:016x}-01"}


def header(engine: Any) -> Header:
    return Histories(engine.run_dir / file_name(0)).header


def told(engine: Any) -> dict[str, RequestSummary]:
    """What the file tells of requests, by id."""
    histories = Histories(engine.run_dir / file_name(0))
    found = [histories.summary(offset) for offset, _ in histories.keys()]  # noqa: SIM118
    return {each.request_id: each for each in found if each is not None}


def send(engine: Any, name: str, kind: str = "chat", **other: Any) -> Any:
    engine.add(name, kind, arrival_s=time.time() - engine.began_s, **other)
    return engine.scheduler.requests[name]


def run(engine: Any) -> None:
    for _ in engine.run():
        pass


@pytest.mark.parametrize("mode", Mode)
def test_a_prompt_in_parts_is_told_in_every_mode(make: Any, mode: Mode) -> None:
    engine = make(policy(classes=CLASSES, mode=mode), max_num_batched_tokens=64)
    send(engine, "r", prompt_tokens=150, output_tokens=3)
    run(engine)
    found = told(engine)["r"]
    assert (found.state, found.class_name, found.prompt_tokens) == (State.FINISHED, "chat", 150)
    assert (found.chunks, found.chunk_tokens, found.largest_chunk_tokens) == (3, 150, 64)
    assert (found.output_tokens, found.preemptions, found.cached_tokens) == (3, 0, 0)
    assert found.arrived_ns <= found.admitted_ns <= found.first_token_ns <= found.ended_ns
    assert min(found.waiting_ns, found.prefilling_ns, found.decoding_ns) > 0
    assert found.total_ns == found.ended_ns - found.arrived_ns


def test_a_request_that_waited_tells_for_whom(make: Any) -> None:
    engine = make(policy(classes=CLASSES, max_batch_size=1))
    send(engine, "other", "batch", prompt_tokens=300, output_tokens=5)
    engine.step()
    send(engine, "r", prompt_tokens=10)
    run(engine)
    found = told(engine)["r"]
    [went_first] = found.yielded
    # What was computed before it arrived is not among them.
    assert (went_first.class_name, went_first.tokens) == ("batch", 300 - 256)
    assert found.waited_steps == 5


@pytest.mark.parametrize("stock", [False, True])
def test_a_preempted_request_tells_what_was_computed_again(make: Any, stock: bool) -> None:
    engine = make(None if stock else policy(classes=CLASSES), blocks=14)
    computed = 0
    for number in range(6):
        send(engine, f"r{number}", prompt_tokens=40, output_tokens=60)
    for output in engine.run():
        computed += output.total_num_scheduled_tokens
    found = told(engine).values()
    assert sum(each.preemptions for each in found) == engine.record.preemptions_total > 0
    # All tokens but the last of each are computed once, and some again.
    assert sum(each.recomputed_tokens for each in found) == computed - 6 * (40 + 59)
    assert all(each.preempted_ns > 0 for each in found if each.preemptions)
    assert header(engine).lost == 0


def test_a_session_is_told_with_its_pauses(make: Any) -> None:
    engine = make(policy(classes=CLASSES))
    send(engine, "session", output_tokens=2, resumable=True)
    for turn in range(3):
        while engine.scheduler.num_waiting_for_streaming_input == 0:
            engine.step()
        assert engine.under_way == 1
        if turn < 2:
            send(engine, "session", output_tokens=2, resumable=True)
    # The last part of a session is one that is none.
    engine.add("session", "chat", prompt_tokens=1, output_tokens=1)
    engine.step()
    assert engine.under_way == 0
    found = told(engine)["session"]
    assert (found.state, found.turns, found.class_name) == (State.ABORTED, 3, "chat")
    assert found.paused_ns > 0
    assert header(engine).lost == 0


def test_a_next_part_that_came_early_is_waited_for_by_nobody(make: Any) -> None:
    engine = make(policy(classes=CLASSES))
    send(engine, "session", output_tokens=3, resumable=True)
    engine.step()
    send(engine, "session", output_tokens=3, resumable=True)
    engine.add("session", "chat", prompt_tokens=1, output_tokens=1)
    run(engine)
    found = told(engine)["session"]
    assert (found.state, found.turns, found.paused_ns) == (State.FINISHED, 1, 0)
    assert (header(engine).lost, engine.under_way) == (0, 0)


def test_with_overlapping_steps_histories_are_the_same(make: Any) -> None:
    engine = make(policy(classes=CLASSES), max_num_batched_tokens=64)
    send(engine, "r", prompt_tokens=100, output_tokens=5)
    ahead = engine.schedule()
    while engine.scheduler.has_requests():
        behind, ahead = ahead, engine.schedule()
        engine.finish(behind)
    engine.finish(ahead)
    found = told(engine)["r"]
    assert (found.chunks, found.chunk_tokens, found.output_tokens) == (2, 100, 5)
    assert (found.state, header(engine).lost) == (State.FINISHED, 0)


def test_whatever_happens_to_thousands_of_requests_no_history_is_lost(make: Any) -> None:
    chance = random.Random(11)  # noqa: S311 - the same chance every time
    engine = make(policy(1, classes=CLASSES), blocks=60)
    ahead, alive = None, []
    for number in range(2500):
        name = f"r{number}"
        kind = chance.choice(["chat", "batch", "unknown"])
        tokens = {"prompt_tokens": chance.randint(1, 400), "output_tokens": chance.randint(1, 40)}
        send(engine, name, kind, resumable=chance.random() < 0.05, **tokens)
        alive.append(name)
        if chance.random() < 0.5:
            behind, ahead = ahead, engine.schedule()
            if behind is not None:
                engine.finish(behind)
        if chance.random() < 0.5:
            status = chance.choice([RequestStatus.FINISHED_ABORTED, RequestStatus.FINISHED_ERROR])
            engine.scheduler.finish_requests(chance.sample(alive, k=min(len(alive), 2)), status)
        if chance.random() < 0.01:
            engine.scheduler.reset_prefix_cache(reset_running_requests=True)
        alive = [each for each in alive if each in engine.scheduler.requests]
        assert engine.under_way == len(alive)
    found = told(engine)
    assert header(engine).lost == 0
    assert sum(each.preemptions for each in found.values()) > 30
    for each in found.values():
        assert each.total_ns == each.since_ns - each.arrived_ns


def test_requests_without_a_shared_directory_cost_nothing(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make(policy())
    monkeypatch.setattr(engine.scheduler._headway._journal, "_writer", None)
    send(engine, "r")
    run(engine)
    assert told(engine) == {}


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Spans that are made, as vLLM's own would be."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr("opentelemetry.trace.get_tracer", provider.get_tracer)
    # As it is in an engine's process: that of the engine's start.
    monkeypatch.setenv("traceparent", f"00-{'a' * 32}-{'b' * 16}-01")
    return exporter


def traced(configuration: Any) -> None:
    configuration.observability_config.otlp_traces_endpoint = "http://127.0.0.1:1"


def test_a_traced_request_has_a_span_on_its_clients_trace(make: Any, spans: Any) -> None:
    assert tracing.is_tracing_available()
    engine = make(policy(classes=CLASSES), prepare=traced)
    send(engine, "traced").trace_headers = HEADERS
    # What vLLM has for requests whose clients sent no headers, by release.
    send(engine, "none").trace_headers = None
    send(engine, "empty").trace_headers = {}
    run(engine)
    [span] = spans.get_finished_spans()
    found = told(engine)["traced"]
    assert (span.name, span.context.trace_id, span.parent.span_id) == (
        SPAN_NAME,
        TRACE_ID,
        PARENT_ID,
    )
    assert (span.start_time, span.end_time) == (found.arrived_ns, found.ended_ns)
    assert span.attributes["headway.class"] == "chat"
    assert span.attributes["headway.wait_seconds"] == found.waiting_ns / 1e9
    assert "Its first token came" in span.attributes["headway.explanation"]


def test_a_client_that_wants_no_trace_has_no_span(make: Any, spans: Any) -> None:
    engine = make(policy(classes=CLASSES), prepare=traced)
    send(engine, "r").trace_headers = {"traceparent": HEADERS["traceparent"][:-2] + "00"}
    run(engine)
    assert spans.get_finished_spans() == ()


def test_an_engine_that_is_not_traced_makes_no_span(make: Any, spans: Any) -> None:
    engine = make(policy(classes=CLASSES))
    send(engine, "r").trace_headers = HEADERS
    run(engine)
    assert spans.get_finished_spans() == ()


def test_a_request_that_ended_past_the_plug_in_is_told_no_more(make: Any) -> None:
    engine = make(policy(classes=CLASSES))
    for number in range(600):
        send(engine, f"r{number}")
        Scheduler.finish_requests(engine.scheduler, f"r{number}", RequestStatus.FINISHED_ABORTED)
    assert engine.under_way < 600
    assert told(engine) == {}
