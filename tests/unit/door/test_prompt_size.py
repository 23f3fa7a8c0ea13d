"""How long a prompt is, roughly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.door.prompt_size import prompt_tokens

IMAGE = "data:image/png;base64," + "A" * 40_000
TEXT = {"type": "text", "text": "word " * 400}

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("content"), inner),
)


def tokens(document: dict[str, Any]) -> int:
    return prompt_tokens(document, len(json.dumps(document)))


def test_token_ids_are_counted() -> None:
    assert tokens({"prompt": list(range(1000, 1100))}) == 100
    assert tokens({"prompt": [[1, 2, 3], [4, 5]]}) == 5
    assert tokens({"token_ids": [1] * 7, "sampling_params": {}}) == 7


@pytest.mark.parametrize(
    "document",
    [
        {"prompt": "word " * 400},
        {"prompt": ["word " * 200, "word " * 200]},
        {"messages": [{"role": "user", "content": "word " * 400}]},
        {"messages": [{"role": "user", "content": [TEXT]}]},
        {"input": "word " * 400},
    ],
)
def test_text_is_a_token_for_each_four_bytes(document: dict[str, Any]) -> None:
    assert 500 <= tokens(document) <= 530


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": IMAGE}},
        {"type": "input_image", "image_url": IMAGE},
        {"type": "input_audio", "input_audio": {"data": IMAGE, "format": "wav"}},
        {"type": "image", "source": {"type": "base64", "data": IMAGE}},
        {"type": "tool_result", "content": [{"type": "image", "source": {"data": IMAGE}}]},
    ],
)
@pytest.mark.parametrize("key", ["messages", "input"])
def test_media_count_as_nothing(key: str, part: dict[str, Any]) -> None:
    message = {"role": "user", "content": [TEXT, part]}
    assert 500 <= tokens({key: [message]}) <= 560
    assert 1000 <= tokens({key: [[message], [message]]}) <= 1120


@given(st.dictionaries(st.sampled_from(["prompt", "messages", "input", "token_ids"]), values))
def test_whatever_clients_send_has_a_length(document: dict[str, Any]) -> None:
    assert tokens(document) >= 0
