"""Spans of requests: what they say, how many there are, and what an error in them costs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headway_runtime.executors.vllm.request_spans import (
    MOST_IN_A_STEP,
    SPAN_NAME,
    RequestSpans,
    attributes,
)
from headway_runtime.executors.vllm.tracing import request_spans
from headway_runtime.scheduling.history.lifecycle import State
from headway_runtime.scheduling.history.summary import RequestSummary, Yielded

HEADERS = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
TOLD = RequestSummary(
    "r",
    "chat",
    "somebody",
    State.FINISHED,
    arrived_ns=10**9,
    ended_ns=3 * 10**9,
    waiting_ns=1_500_000_000,
    prefilling_ns=500_000_000,
    chunks=2,
    preemptions=1,
    yielded_tokens=70,
    yielded=(Yielded("batch", "other", 60),),
)


class Tracing:
    """Keeps the spans that are made."""

    def __init__(self) -> None:
        self.made: list[tuple[Any, ...]] = []
        self.spans = RequestSpans(self._instrument, lambda headers: ("context", headers))

    def _instrument(self, *told: Any) -> None:
        self.made.append(told)


def test_a_span_is_as_long_as_its_request_and_on_the_clients_trace() -> None:
    tracing = Tracing()
    tracing.spans.ended(HEADERS, TOLD)
    [(name, start_ns, end_ns, _, context)] = tracing.made
    assert (name, start_ns, end_ns) == (SPAN_NAME, 10**9, 3 * 10**9)
    assert context == ("context", HEADERS)


def test_a_span_tells_the_history() -> None:
    found = attributes(TOLD)
    assert found["headway.class"] == "chat"
    assert found["headway.tenant"] == "somebody"
    assert found["headway.state"] == "finished"
    assert found["headway.wait_seconds"] == 1.5
    assert (found["headway.chunks"], found["headway.preemptions"]) == (2, 1)
    assert found["headway.yielded_to"] == ["batch/other: 60"]
    assert "1.5 s of 2.0 s waiting" in found["headway.explanation"]
    assert not any(isinstance(each, dict | tuple) for each in found.values())


def test_a_step_makes_so_many_spans_and_counts_the_rest() -> None:
    tracing = Tracing()
    for _ in range(MOST_IN_A_STEP + 3):
        tracing.spans.ended(HEADERS, TOLD)
    assert (len(tracing.made), tracing.spans.dropped) == (MOST_IN_A_STEP, 3)
    tracing.spans.step_ended()
    tracing.spans.ended(HEADERS, TOLD)
    assert (len(tracing.made), tracing.spans.dropped) == (MOST_IN_A_STEP + 1, 3)


def test_an_error_costs_the_spans_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    spans = RequestSpans(lambda *_: 1 / 0, lambda headers: headers)
    spans.ended(HEADERS, TOLD)
    spans.ended(HEADERS, TOLD)
    assert caplog.text.count("makes no spans") == 1


def test_an_engine_that_is_not_traced_makes_none() -> None:
    observability = SimpleNamespace(otlp_traces_endpoint=None)
    assert request_spans(SimpleNamespace(observability_config=observability)) is None
