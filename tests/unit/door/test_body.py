"""What a body declares, and how the door's own word gets into it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.door.body import Body, UnreadableBodyError, read_body

OWN = {"headway_tenant": "seal:acme"}
XARGS = "vllm_xargs"

# Half a surrogate pair may stand in JSON as an escape.
texts = st.text(st.characters(codec=None))
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
values = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=8
)
keys = st.sampled_from([XARGS, "prompt", "model", "sampling_params"]) | texts
arguments = st.dictionaries(
    st.sampled_from(["headway_class", "headway_tenant", "other"]) | texts, values
)
documents = st.dictionaries(keys, values).flatmap(
    lambda rest: st.one_of(
        st.just(rest),
        st.just({**rest, XARGS: None}),
        arguments.map(lambda given_: {**rest, XARGS: given_}),
    )
)
layouts = st.sampled_from([None, 2])
encodings = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32-be"])


def body(document: Any, *, in_sampling: bool = False) -> Body:
    return read_body(json.dumps(document).encode(), in_sampling=in_sampling)


@given(documents, layouts, encodings, st.dictionaries(st.just("headway_tenant"), st.text()))
def test_the_rest_of_a_body_stays_as_it_was(
    document: dict[str, Any], indent: int | None, encoding: str, own: dict[str, str]
) -> None:
    raw = (" \n" + json.dumps(document, indent=indent)).encode(encoding)
    try:
        read = read_body(raw, in_sampling=False)
    except UnreadableBodyError:
        assert not isinstance(document.get(XARGS, {}), (dict, type(None)))
        return
    found = json.loads(read.with_own(own))
    theirs = {k: v for k, v in (document.get(XARGS) or {}).items() if k != "headway_tenant"}
    assert (found.pop(XARGS, None) or {}) == {**theirs, **own}
    document.pop(XARGS, None)
    assert found == document


def test_arguments_of_a_body_without_any_are_put_in_front_of_the_same_bytes() -> None:
    raw = b' { "model": "m",  "prompt": "\\ud800 \xc3\xa9" }'
    assert read_body(raw, in_sampling=False).with_own(OWN) == (
        b' {"vllm_xargs":{"headway_tenant":"seal:acme"}, '
        b'"model": "m",  "prompt": "\\ud800 \xc3\xa9" }'
    )


def test_an_empty_body_gets_no_comma() -> None:
    assert json.loads(read_body(b"{}", in_sampling=False).with_own(OWN)) == {XARGS: OWN}


@pytest.mark.parametrize(
    "raw",
    [
        b'{"vllm_xargs": {"headway_tenant": "forged"}, "vllm_xargs": null}',
        b'{"vllm_xargs": null}',
        b'{"vllm_xar\\u0067s": {"headway_tenant": "forged"}}',
        b'{"vllm_xargs": {"headway_ten\\u0061nt": "forged"}}',
        b'{"vllm_xargs": {"headway_tenant": "a", "headway_tenant": "b"}}',
    ],
)
def test_nothing_a_client_writes_replaces_the_doors_word(raw: bytes) -> None:
    assert json.loads(read_body(raw, in_sampling=False).with_own(OWN)) == {XARGS: OWN}


def test_where_the_door_has_nothing_to_say_a_body_keeps_its_bytes() -> None:
    for raw in (b'{"prompt": "x"}', b'{ "vllm_xargs": {"other": 1} }', b'{"vllm_xargs": null}'):
        assert read_body(raw, in_sampling=False).with_own({}) is raw


def test_a_tenant_that_a_client_wrote_is_taken_out_all_the_same() -> None:
    forged = body({XARGS: {"headway_tenant": "acme", "other": [1, "x"]}})
    assert json.loads(forged.with_own({})) == {XARGS: {"other": [1, "x"]}}


def test_trusted_headers_win_over_the_body() -> None:
    read = body({XARGS: {"headway_class": "batch", "other": 1}})
    found = json.loads(read.with_own({"headway_class": "chat"}))
    assert found == {XARGS: {"headway_class": "chat", "other": 1}}


@pytest.mark.parametrize("extra", [{}, {"extra_args": None}, {"extra_args": {"other": 1}}])
def test_arguments_of_tokens_in_are_within_the_sampling_parameters(extra: dict[str, Any]) -> None:
    document = {"token_ids": [1, 2], "sampling_params": {"max_tokens": 3, **extra}}
    found = json.loads(body(document, in_sampling=True).with_own(OWN))
    theirs = extra.get("extra_args") or {}
    assert found == {
        "token_ids": [1, 2],
        "sampling_params": {"max_tokens": 3, "extra_args": {**theirs, **OWN}},
    }


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"headway_class": "chat"}, "chat"),
        ({"headway_class": 7}, None),
        ({"headway_class": ["chat"]}, None),
        ({"headway_class": "x" * 129}, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_body_names_its_class(arguments: Any, name: str | None) -> None:
    assert body({XARGS: arguments}).class_name == name


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"no JSON",
        b"[]",
        b'"text"',
        b'{"vllm_xargs": "text"}',
        b'{"vllm_xargs": [1]}',
        b'{"open": ',
        b"\xff\xff",
        b'{"x": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        b'{"x": ' + b"1" * 5000 + b"}",
    ],
)
def test_a_body_that_is_not_as_it_should_be_is_refused(raw: bytes) -> None:
    with pytest.raises(UnreadableBodyError) as refused:
        read_body(raw, in_sampling=False)
    # What clients send is not repeated.
    assert str(refused.value) == ""
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


@pytest.mark.parametrize("sampling", [None, [], "text", {"extra_args": 1}])
def test_tokens_in_without_sampling_parameters_is_refused(sampling: Any) -> None:
    with pytest.raises(UnreadableBodyError):
        body({"sampling_params": sampling}, in_sampling=True)
