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
    body = json.dumps(_anthropic(message) if anthropic else _openai(message)).encode("ascii")
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"retry-after", b"%d" % refusal.retry_after_s),
    ]
    return Answer(HTTPStatus.SERVICE_UNAVAILABLE, headers, body)


def _openai(message: str) -> dict[str, Any]:
    error = {
        "message": message,
        # As vLLM's own when its queue is full.
        "type": "Service Unavailable",
        "param": None,
        "code": int(HTTPStatus.SERVICE_UNAVAILABLE),
    }
    return {"error": error}


def _anthropic(message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": "overloaded_error", "message": message}}
