"""A span for each request on vLLM's trace of it, beside the one that vLLM's front-end makes.

vLLM has set up tracing in the engine's process, with a thread of its own that exports.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from headway_runtime.scheduling.history.explanation import explain
from headway_runtime.scheduling.history.lifecycle import State
from headway_runtime.scheduling.history.summary import RequestSummary

SPAN_NAME = "headway_request"

MOST_IN_A_STEP = 8
"""Each takes up to 0.2 ms; of requests that end with one step, further ones go without."""

_LOGGER = logging.getLogger("vllm.headway")


class RequestSpans:
    """Makes spans. Whatever goes wrong costs spans, and nothing else.

    Attributes:
        dropped: requests that went without, since too many ended with one step.

    Args:
        instrument: ``vllm.tracing.instrument_manual``.
        context_of: ``vllm.tracing.extract_trace_context``.
    """

    def __init__(
        self,
        instrument: Callable[..., object],
        context_of: Callable[[Mapping[str, str]], object],
    ) -> None:
        self.dropped = 0
        self._instrument = instrument
        self._context_of = context_of
        self._left = MOST_IN_A_STEP
        self._works = True

    def step_ended(self) -> None:
        """What follows belongs to another step."""
        self._left = MOST_IN_A_STEP

    def ended(self, trace_headers: Mapping[str, str], told: RequestSummary) -> None:
        """A request has ended whose client sent these headers of a trace; some there must be.

        Without them, vLLM would put the span on the trace of its own start.
        """
        if not self._works:
            return
        if not self._left:
            self.dropped += 1
            return
        self._left -= 1
        try:
            self._instrument(
                SPAN_NAME,
                told.arrived_ns,
                told.ended_ns,
                attributes(told),
                self._context_of(trace_headers),
            )
        except Exception:
            self._works = False
            _LOGGER.exception("Headway makes no spans from now on")


def attributes(told: RequestSummary) -> dict[str, Any]:
    """What a span says of a request that has ended."""
    found: dict[str, Any] = {
        "headway.request_id": told.request_id,
        "headway.class": told.class_name,
        "headway.tenant": told.tenant,
        "headway.state": State(told.state).name.lower(),
        "headway.wait_seconds": told.waiting_ns / 1e9,
        "headway.prefill_seconds": told.prefilling_ns / 1e9,
        "headway.decode_seconds": told.decoding_ns / 1e9,
        "headway.preempted_seconds": told.preempted_ns / 1e9,
        "headway.paused_seconds": told.paused_ns / 1e9,
        "headway.prompt_tokens": told.prompt_tokens,
        "headway.cached_tokens": told.cached_tokens,
        "headway.chunks": told.chunks,
        "headway.largest_chunk_tokens": told.largest_chunk_tokens,
        "headway.preemptions": told.preemptions,
        "headway.recomputed_tokens": told.recomputed_tokens,
        "headway.waited_steps": told.waited_steps,
        "headway.yielded_tokens": told.yielded_tokens,
        "headway.ttft_given_up": bool(told.given_up_ns),
        "headway.explanation": " ".join(explain(told)),
    }
    if told.yielded:
        found["headway.yielded_to"] = [
            f"{each.class_name}/{each.tenant}: {each.tokens}" for each in told.yielded
        ]
    return found
