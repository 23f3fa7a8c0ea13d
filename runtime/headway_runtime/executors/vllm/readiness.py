"""Whether vLLM admits a waiting request when it comes to it, or passes over it."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from headway_runtime.scheduling.view import Readiness

_GRAMMAR = "WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR"
_UNKNOWN = ""
_waits_for: dict[Any, str | None] = {}
"""Of each status its name, if it is one of those that wait for something: an enumeration takes a
microsecond to tell a name."""


def readiness(request: Any) -> Readiness:
    """Readiness of a vLLM request.

    Passed over are those whose status says what they wait for, and preempted ones whose tokens are
    still on their way.
    """
    waits_for = _waits_for.get(request.status, _UNKNOWN)
    if waits_for == _UNKNOWN:
        waits_for = _what_it_waits_for(request.status)
    if waits_for is not None:
        grammar = waits_for == _GRAMMAR
        return _of_grammar(request.structured_output_request) if grammar else Readiness.BLOCKED
    on_their_way = getattr(request, "num_stale_output_tokens", 0)
    if on_their_way and not request.drop_stale_output:
        return Readiness.PENDING
    return Readiness.READY


def _what_it_waits_for(status: Any) -> str | None:
    name = str(status.name)
    _waits_for[status] = name if name.startswith("WAITING_FOR_") else None
    return _waits_for[status]


def _of_grammar(structured_output: Any) -> Readiness:
    # Not by its property, which waits for the compiler in some versions.
    grammar = getattr(structured_output, "_grammar", None)
    if not isinstance(grammar, Future):
        return _of_compiled(grammar)
    if not grammar.done():
        return Readiness.PENDING
    failed = grammar.cancelled() or grammar.exception() is not None
    return Readiness.BLOCKED if failed else Readiness.READY


def _of_compiled(grammar: Any) -> Readiness:
    if grammar is None:
        return Readiness.PENDING
    return Readiness.BLOCKED if isinstance(grammar, Exception) else Readiness.READY
