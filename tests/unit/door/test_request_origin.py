"""Where the scheduler's requests come from."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.exchange.tenant_seal import TenantSeal
from headway_runtime.executors.vllm.request_origin import origin_of
from headway_runtime.scheduling.origin import UNKNOWN, Call, Origin

SEAL = TenantSeal(b"secret")
DECLARED = {
    "headway_tenant": SEAL.stamped("acme"),
    "headway_program": "report-7",
    "headway_node": "merge",
    "headway_parents": ["read", "search"],
    "headway_children": ["write"],
    "headway_deadline_seconds": 30,
}
CALL = Call("report-7", "merge", ("read", "search"), ("write",), 30.0)


def request(extra: Any, **attributes: Any) -> Any:
    return SimpleNamespace(sampling_params=SimpleNamespace(extra_args=extra), **attributes)


def test_what_a_client_declares_is_found() -> None:
    assert origin_of(request(DECLARED), SEAL) == Origin("acme", CALL)


@pytest.mark.parametrize("sealed", ["acme", ":acme", TenantSeal(b"other").stamped("acme"), 7, None])
def test_a_tenant_that_was_not_sealed_is_nobody(sealed: Any) -> None:
    found = origin_of(request({**DECLARED, "headway_tenant": sealed}), SEAL)
    assert found == Origin("", CALL)


def test_without_a_seal_nobody_is_told_apart() -> None:
    assert origin_of(request(DECLARED), None) == Origin("", CALL)


def test_a_session_is_a_program_where_none_is_named() -> None:
    assert origin_of(request(None, session_id="s"), SEAL) == Origin("", Call("s"))
    assert origin_of(request({}, session_id="s"), SEAL) == Origin("", Call("s"))
    assert origin_of(request(DECLARED, session_id="s"), SEAL).call == CALL


@pytest.mark.parametrize("extra", [None, {}, {"other": 1}, [], "text"])
def test_a_request_that_declares_nothing_is_unknown(extra: Any) -> None:
    assert origin_of(request(extra), SEAL) == UNKNOWN
    assert origin_of(request(extra, session_id=None), SEAL) == UNKNOWN
    assert origin_of(SimpleNamespace(sampling_params=None), SEAL) == UNKNOWN


@pytest.mark.parametrize(
    ("key", "value", "field"),
    [
        ("headway_node", "x" * 129, {"node": ""}),
        ("headway_parents", ["x"] * 65, {"parents": ()}),
        ("headway_parents", ["fits", "x" * 129], {"parents": ()}),
        ("headway_parents", ["fits", 7], {"parents": ()}),
        ("headway_parents", "read", {"parents": ()}),
        ("headway_children", ["fits", ""], {"children": None}),
        ("headway_deadline_seconds", 0, {"deadline_s": None}),
        ("headway_deadline_seconds", -1, {"deadline_s": None}),
        ("headway_deadline_seconds", float("nan"), {"deadline_s": None}),
        ("headway_deadline_seconds", float("inf"), {"deadline_s": None}),
        ("headway_deadline_seconds", 10**400, {"deadline_s": None}),
        ("headway_deadline_seconds", True, {"deadline_s": None}),
        ("headway_deadline_seconds", "30", {"deadline_s": None}),
        ("headway_deadline_seconds", 0.5, {"deadline_s": 0.5}),
    ],
)
def test_what_does_not_fit_is_ignored_as_a_whole(
    key: str, value: Any, field: dict[str, Any]
) -> None:
    assert origin_of(request({**DECLARED, key: value}), SEAL).call == CALL._replace(**field)


@pytest.mark.parametrize("program", ["x" * 129, "", 7, None, ["p"]])
def test_without_a_program_there_is_no_call(program: Any) -> None:
    extra = {**DECLARED, "headway_program": program}
    assert origin_of(request(extra), SEAL) == Origin("acme")
    assert origin_of(request(extra, session_id="s"), SEAL).call == CALL._replace(program="s")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.dictionaries(st.sampled_from(sorted(DECLARED)) | st.text(), values) | values, values)
def test_whatever_clients_send_stays_within_bounds_and_unchanged(extra: Any, session: Any) -> None:
    before = copy.deepcopy(extra)
    tenant, call = origin_of(request(extra, session_id=session), SEAL)
    assert repr(extra) == repr(before)
    assert tenant == ""
    if call is not None:
        ids = (call.program, call.node, *call.parents, *(call.children or ()))
        assert all(isinstance(each, str) and len(each) <= 128 for each in ids)
        assert max(len(call.parents), len(call.children or ())) <= 64
        assert call.deadline_s is None or 0 < call.deadline_s < float("inf")
