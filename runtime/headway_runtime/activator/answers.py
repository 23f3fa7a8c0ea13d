"""What is answered while no engine does. Pure."""

from __future__ import annotations

import json
from enum import StrEnum
from http import HTTPStatus
from typing import Any, NamedTuple

_MESSAGES_PATH = "/v1/messages"
"""Clients of Anthropic's API know errors in another shape."""

_ALIVE = frozenset({"/health", "/ping"})
"""The service takes requests, and whoever asks only for that must not start an engine."""

_WAKING = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class Refusal(StrEnum):
    """Why a request is not held, or not any longer."""

    FULL = "ActivatorFull"
    TOO_LATE = "EngineNotReady"
    NOT_HELD = "NoEngine"
    LOST = "EngineLost"


class Answer(NamedTuple):
    """An HTTP response.

    Attributes:
        status: its status.
        body: its body, as JSON.
        retry_after_s: seconds until the client should try again; None where it is not told.
    """

    status: int
    body: bytes
    retry_after_s: int | None = None


def wakes(method: str, *, is_upgrade: bool) -> bool:
    """Whether a request is a reason to start an engine: what only looks is none."""
    return method in _WAKING or is_upgrade


def at_once(method: str, path: str, served_name: str) -> Answer | None:
    """What can be answered without an engine."""
    if method not in {"GET", "HEAD"}:
        return None
    if path in _ALIVE:
        return Answer(HTTPStatus.OK, b"{}")
    if path == "/v1/models":
        model = {"id": served_name, "object": "model", "owned_by": "vllm", "root": served_name}
        return Answer(HTTPStatus.OK, _json({"object": "list", "data": [model]}))
    return None


def refused(refusal: Refusal, why: str, path: str, retry_after_s: int) -> Answer:
    """503 with the time after which an engine should be there."""
    message = f"{refusal.value}: {why}. Try again in {retry_after_s} s."
    status = HTTPStatus.SERVICE_UNAVAILABLE
    return Answer(status, _error(message, status, path), retry_after_s)


def lost(path: str) -> Answer:
    """502: the engine may have begun to work on it."""
    message = f"{Refusal.LOST.value}: the engine went before it answered. Try again."
    return Answer(HTTPStatus.BAD_GATEWAY, _error(message, HTTPStatus.BAD_GATEWAY, path))


def _error(message: str, status: HTTPStatus, path: str) -> bytes:
    if path.startswith(_MESSAGES_PATH):
        kind = "overloaded_error" if status == HTTPStatus.SERVICE_UNAVAILABLE else "api_error"
        return _json({"type": "error", "error": {"type": kind, "message": message}})
    error = {"message": message, "type": status.phrase, "param": None, "code": int(status)}
    return _json({"error": error})


def _json(value: Any) -> bytes:
    return json.dumps(value).encode("ascii")
