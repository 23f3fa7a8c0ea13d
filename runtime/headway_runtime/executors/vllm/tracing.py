"""Whether this engine is traced, and what makes its spans."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from headway_runtime.executors.vllm.request_spans import RequestSpans


def request_spans(vllm_config: Any) -> RequestSpans | None:
    """Spans for an engine of this configuration; None where nothing is traced.

    Raises:
        Exception: this vLLM traces in another way.
    """
    if not vllm_config.observability_config.otlp_traces_endpoint:
        return None
    # Only now: an engine that is not traced must not depend on it.
    tracing = import_module("vllm.tracing")
    if not tracing.is_tracing_available():
        return None
    return RequestSpans(tracing.instrument_manual, tracing.extract_trace_context)
