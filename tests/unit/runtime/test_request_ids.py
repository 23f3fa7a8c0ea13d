"""Which requests an id means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.exchange.history_record import ID_BYTES
from headway_runtime.sidecar.request_ids import is_asked_for

END = "-97395f45"
LONG = "x" * 200


@pytest.mark.parametrize(
    ("request_id", "asked"),
    [
        # As they were seen in vLLM 0.32.
        ("cmpl-REQ-1-0" + END, "cmpl-REQ-1"),
        ("cmpl-REQ-1-0" + END, "REQ-1"),
        ("cmpl-REQ-1-0" + END, "cmpl-REQ-1-0" + END),
        ("cmpl-REQ-1-0" + END, "cmpl-REQ-1-0"),
        ("1_cmpl-REQ-1-1" + END, "cmpl-REQ-1"),
        ("1_cmpl-REQ-1-1" + END, "1_cmpl-REQ-1-1" + END),
        ("chatcmpl-REQ-1" + END, "chatcmpl-REQ-1"),
        ("chatcmpl-REQ-1" + END, "REQ-1"),
        ("chatcmpl-rid_1" + END, "rid"),
        ("resp_952cce90530e7aef_0" + END, "resp_952cce90530e7aef"),
        ("resp_952cce90530e7aef_1" + END, "952cce90530e7aef"),
        ("cmpl-REQ-1-9cf612f46e2df2db-beam-0" + END, "cmpl-REQ-1"),
        ("embd-rid-0" + END, "embd-rid"),
        ("generate-tokens-rid" + END, "rid"),
        # VLLM_DISABLE_REQUEST_ID_RANDOMIZATION: what looks like a random end is the client's.
        ("chatcmpl-deadbeef", "chatcmpl-deadbeef"),
        ("chatcmpl-a-deadbeef", "a-deadbeef"),
        (("chatcmpl-" + LONG)[:ID_BYTES], "chatcmpl-" + LONG),
        (("chatcmpl-" + LONG)[:ID_BYTES], LONG),
        (("0_cmpl-" + LONG)[:ID_BYTES], "cmpl-" + LONG),
    ],
)
def test_the_id_of_an_answer_and_the_clients_own_find_the_request(
    request_id: str, asked: str
) -> None:
    assert is_asked_for(request_id, asked)


@pytest.mark.parametrize(
    ("request_id", "asked"),
    [
        ("cmpl-REQ-10-0" + END, "REQ-1"),
        ("chatcmpl-REQ-1" + END, "REQ"),
        ("chatcmpl-REQ-1" + END, "EQ-1"),
        ("chatcmpl-REQ-1" + END, "97395f45"),
        ("chatcmpl-REQ-1-x" + END, "REQ-1"),
        ("chatcmpl-REQ-1" + END, ""),
        ("chatcmpl-REQ-1" + END, "chatcmpl-REQ-2"),
        (("chatcmpl-" + LONG)[:ID_BYTES], "chatcmpl-y" + LONG),
    ],
)
def test_other_ids_do_not(request_id: str, asked: str) -> None:
    assert not is_asked_for(request_id, asked)


@given(st.text(max_size=120), st.text(max_size=120))
def test_no_id_is_too_strange_to_be_looked_for(request_id: str, asked: str) -> None:
    assert is_asked_for(request_id, asked) in {True, False}
