"""The answer to a request that is refused. Pure."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, NamedTuple

from headway_runtime.scheduling.admission.refusal import Refusal, RefusalReason

_WHY = {
    RefusalReason.QUEUE_FULL: "as many requests of class '{name}' wait here as may (maxQueued)",
    RefusalReason.OBJECTIVE_UNMET: (
        "the objective of class '{name}' cannot be kept for this request now, and the class does "
        "not queue what comes too late (whenUnmet: Shed)"
    ),
}


_REMEDY = {
    RefusalReason.QUEUE_FULL: "in another class",
    RefusalReason.OBJECTIVE_UNMET: "with a shorter prompt, or in another class",
}


HELD_RETRY_S = 10
"""After so long a suspect may be tried."""


class Answer(NamedTuple):
    """An HTTP response.

    Attributes:
        status: its status.
        headers: as ASGI has them.
        body: its body.
    """

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def answer(refusal: Refusal, class_name: str, *, anthropic: bool) -> Answer:
    """The answer: 503 with ``Retry-After``, in the shape that the API's clients know errors in.

    Args:
        refusal: why, and when to try again.
        class_name: the request's class, a name of the policy.
        anthropic: whether the client speaks Anthropic's API instead of OpenAI's.
    """
    why = _WHY[refusal.reason].format(name=class_name)
    message = (
        f"{refusal.reason.value}: {why}. Try again in {refusal.retry_after_s} s, or "
        f"{_REMEDY[refusal.reason]}."
    )
    document = _anthropic(message) if anthropic else _openai(message)
    return _answer(HTTPStatus.SERVICE_UNAVAILABLE, document, refusal.retry_after_s)


def quarantined(fingerprint: bytes, crashes: int, left_s: float, *, anthropic: bool) -> Answer:
    """The answer to a request that has killed the engine: 422, which nobody tries again.

    A router tries 5xx again, on another engine.

    Args:
        fingerprint: of the request.
        crashes: how often the engine died with it.
        left_s: for so much longer it is refused.
        anthropic: whether the client speaks Anthropic's API instead of OpenAI's.
    """
    message = (
        f"Quarantined: the engine died {crashes} times while it worked on this request, so it is "
        f"refused for {max(1, round(left_s / 60))} more minutes. Do not send it again; change it, "
        f"or show whoever runs this service its fingerprint, {fingerprint.hex()}."
    )
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    document = (
        _anthropic(message, "invalid_request_error")
        if anthropic
        else _openai(message, status, "Unprocessable Entity")
    )
    return _answer(status, document)


def held(*, anthropic: bool) -> Answer:
    """The answer to a suspect whose turn does not come: 503 with ``Retry-After``."""
    message = (
        "Suspected: the engine died while it worked on this request and others, which are tried "
        f"one after the other now. Try again in {HELD_RETRY_S} s."
    )
    document = _anthropic(message) if anthropic else _openai(message)
    return _answer(HTTPStatus.SERVICE_UNAVAILABLE, document, HELD_RETRY_S)


def _answer(status: HTTPStatus, document: dict[str, Any], retry_s: int | None = None) -> Answer:
    body = json.dumps(document).encode("ascii")
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
    ]
    if retry_s is not None:
        headers.append((b"retry-after", b"%d" % retry_s))
    return Answer(status, headers, body)


def _openai(
    message: str,
    status: HTTPStatus = HTTPStatus.SERVICE_UNAVAILABLE,
    # As vLLM's own when its queue is full.
    kind: str = "Service Unavailable",
) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": int(status)}}


def _anthropic(message: str, kind: str = "overloaded_error") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}
