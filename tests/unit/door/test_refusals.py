"""The answer to a request that is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headway_runtime.door.refusals import Answer, answer
from headway_runtime.scheduling.admission.refusal import Refusal, RefusalReason

UNMET = Refusal(RefusalReason.OBJECTIVE_UNMET, 7)


def content(given: Answer) -> Any:
    return json.loads(given.body)


@pytest.mark.parametrize("anthropic", [False, True])
@pytest.mark.parametrize("reason", RefusalReason)
def test_it_says_when_to_try_again_and_why(reason: RefusalReason, anthropic: bool) -> None:
    given = answer(Refusal(reason, 7), "chat", anthropic=anthropic)
    assert given.status == 503
    assert dict(given.headers) == {
        b"content-type": b"application/json",
        b"content-length": str(len(given.body)).encode(),
        b"retry-after": b"7",
    }
    message = content(given)["error"]["message"]
    for told in ("chat", reason.value, "7 s"):
        assert told in message


def test_clients_of_openai_find_their_error() -> None:
    error = content(answer(UNMET, "chat", anthropic=False))["error"]
    assert (error["type"], error["param"], error["code"]) == ("Service Unavailable", None, 503)


def test_clients_of_anthropic_find_theirs() -> None:
    found = content(answer(UNMET, "chat", anthropic=True))
    assert found["type"] == "error"
    assert found["error"]["type"] == "overloaded_error"
    assert set(found["error"]) == {"type", "message"}
