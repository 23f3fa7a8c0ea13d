"""Requests that are made to break an engine or the plug-in."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

_CHAT, _TEXT = "/v1/chat/completions", "/v1/completions"
_NESTED = 20_000
_ITSELF = {"$ref": "#/$defs/a"}


def requests(model: str) -> dict[str, tuple[str, bytes]]:
    """Path and body of each, by what is wrong with it."""
    chat = {"model": model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}
    text = {"model": model, "prompt": "Hello", "max_tokens": 4}

    def of_chat(**fields: Any) -> tuple[str, bytes]:
        return _CHAT, json.dumps({**chat, **fields}).encode()

    def of_text(**fields: Any) -> tuple[str, bytes]:
        return _TEXT, json.dumps({**text, **fields}).encode()

    def extra(**fields: Any) -> tuple[str, bytes]:
        return of_chat(vllm_xargs=fields)

    return {
        "a torn body": (_CHAT, json.dumps(chat).encode()[:-9]),
        "a body that is no UTF-8": (_CHAT, b'{"model": "\xff\xfe"}'),
        "a body nested 20,000 deep": (_CHAT, b"[" * _NESTED + b"]" * _NESTED),
        "vllm_xargs that is a list": of_chat(vllm_xargs=[1, 2]),
        "a class of a million characters": extra(headway_class="x" * 1_000_000),
        "a class that is an object": extra(headway_class={"a": {"b": []}}),
        "parents nested and of wrong types": extra(headway_program="p", headway_parents=[[1], {}]),
        "a node that is its own parent": extra(
            headway_program="p", headway_node="a", headway_parents=["a"]
        ),
        "a deadline that is not a number": extra(headway_deadline_seconds=float("nan")),
        "a deadline before the request": extra(headway_deadline_seconds=-1e308),
        "a number of more than 64 bits": extra(headway_deadline_seconds=2**70),
        "a number of more than 64 bits for vLLM": extra(anything=2**70),
        "tokens outside of the vocabulary": of_text(prompt=[999_999_999]),
        "negative tokens": of_text(prompt=[-1, -2]),
        "an empty prompt": of_text(prompt=[]),
        "a prompt longer than the context": of_text(prompt=[1] * 5_000),
        "a temperature that is not a number": of_text(temperature=float("nan")),
        "a bias for tokens that do not exist": of_text(logit_bias={"999999999": 100}),
        "100,000 answers at once": of_text(n=100_000),
        "a negative number of tokens": of_text(max_tokens=-5),
        "100,000 stop words": of_text(stop=["x"] * 100_000),
        "a grammar that is none": of_text(structured_outputs={"grammar": "root ::= ((("}),
        "a schema that refers to itself": of_text(
            structured_outputs={
                "json": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}
            }
        ),
    }


def answer_to(url: str, body: bytes) -> str:
    """The status of what is answered, or what the client saw instead."""
    request = urllib.request.Request(url, data=body, headers={"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return f"HTTP {answer.status}"
    except urllib.error.HTTPError as error:
        with error:
            return f"HTTP {error.code}"
    except OSError as error:
        return type(error).__name__
