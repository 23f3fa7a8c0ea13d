"""Fingerprints of requests: what makes two equal, and who can make one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.exchange.fingerprint import BYTES, CANONICAL_BYTES, Fingerprints

PRINTS = Fingerprints(b"secret")
ASKED = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "temperature": 0}


def of(document: Any, prints: Fingerprints = PRINTS) -> bytes:
    return prints.of(json.dumps(document).encode(), document)


@pytest.mark.parametrize(
    "change",
    [
        {"stream": True},
        {"user": "another"},
        {"request_id": "another"},
        {"vllm_xargs": {}},
        {"vllm_xargs": {"headway_class": "c", "headway_tenant": "t", "headway_program": "p"}},
    ],
)
def test_what_changes_nothing_of_what_is_computed_changes_no_fingerprint(change: Any) -> None:
    assert of({**ASKED, **change}) == of(ASKED)
    assert of(dict(reversed({**ASKED, **change}.items()))) == of(ASKED)


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 1},
        {"messages": []},
        {"max_tokens": 1},
        {"vllm_xargs": {"other": 1}},
        {"sampling_params": {"extra_args": {"other": 1}}},
    ],
)
def test_anything_else_does(change: Any) -> None:
    assert of({**ASKED, **change}) != of(ASKED)


def test_within_sampling_parameters_it_is_the_same() -> None:
    def asked(**extra: Any) -> Any:
        return {"token_ids": [1], "sampling_params": {"n": 1, "extra_args": extra}}

    assert of(asked(headway_class="c")) == of(asked()) != of(asked(other=1))


def test_of_a_long_body_the_bytes_count() -> None:
    long = {"prompt": "x" * CANONICAL_BYTES}
    assert of(long) != of({**long, "stream": True})
    assert of(long) == of(long)


def test_what_is_nested_too_deep_has_one_as_well() -> None:
    nested: Any = []
    for _ in range(100_000):
        nested = [nested]
    assert len(PRINTS.of(b"[[[", {"prompt": nested})) == BYTES
    while nested:
        # Else its end would be as deep.
        nested = nested.pop()


def test_pods_have_fingerprints_of_their_own(tmp_path: Path) -> None:
    pods = [tmp_path / name for name in ("a", "b")]
    for each in pods:
        each.mkdir()
    first, again, other = (Fingerprints.of_run(each) for each in (pods[0], pods[0], pods[1]))
    assert of(ASKED, first) == of(ASKED, again) != of(ASKED, other)
    assert again.read(first.stamped(of(ASKED, first))) == of(ASKED, first)
    assert other.read(first.stamped(of(ASKED, first))) is None


@given(st.binary(min_size=BYTES, max_size=BYTES))
def test_only_who_has_the_secret_can_write_one(fingerprint: bytes) -> None:
    stamp = PRINTS.stamped(fingerprint)
    assert PRINTS.read(stamp) == fingerprint
    changed = ("0" if stamp[0] != "0" else "1") + stamp[1:]
    assert PRINTS.read(changed) is None
    assert PRINTS.read(stamp[:-1]) is None


@given(st.text() | st.integers() | st.none() | st.lists(st.text()) | st.text("0aF", min_size=48))
def test_nothing_else_is_taken_for_one(value: Any) -> None:
    assert PRINTS.read(value) is None
