"""Who sends a request."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.door.identity import Identity, KnownTenants, identify, key_digest
from headway_runtime.policy import Tenant
from tests.unit.runtime.policies import policy


def sha256(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


TENANTS = (Tenant("acme", key_sha256=sha256("acme-key").upper()), Tenant("by-header"))
CLOSED = KnownTenants.of(policy(tenants=TENANTS))
TRUSTING = KnownTenants.of(policy(tenants=TENANTS, trust_headers=True))


def headers(**named: str) -> list[tuple[bytes, bytes]]:
    return [(name.replace("_", "-").encode(), value.encode()) for name, value in named.items()]


def who(known: KnownTenants, *, keys_are_checked: bool = True, **named: str) -> Identity:
    sent = headers(**named)
    return identify(sent, key_digest(sent), known, keys_are_checked=keys_are_checked)


def test_a_listed_key_names_its_tenant() -> None:
    for keys_are_checked in (True, False):
        found = who(CLOSED, keys_are_checked=keys_are_checked, authorization="Bearer acme-key")
        assert found == Identity("acme")


def test_an_unlisted_key_is_a_tenant_of_its_own_where_the_engine_checks_keys() -> None:
    unlisted = who(CLOSED, authorization="Bearer other").tenant
    assert unlisted == f"key-{sha256('other')[:8]}"
    assert who(CLOSED, keys_are_checked=False, authorization="Bearer other").tenant == ""


@pytest.mark.parametrize("value", ["", "Bearer", "Bearer ", "Basic acme-key", "acme-key"])
def test_without_a_key_nobody_is_told_apart(value: str) -> None:
    assert who(CLOSED, authorization=value) == Identity()


@pytest.mark.parametrize("value", ["Bearer acme-key", "bearer acme-key", "BEARER acme-key"])
def test_a_key_is_read_as_vllm_reads_it(value: str) -> None:
    assert key_digest(headers(authorization=value)) == sha256("acme-key")
    assert key_digest(headers(authorization="Bearer  acme-key")) == sha256(" acme-key")


def test_without_a_policy_keys_are_told_apart_all_the_same() -> None:
    nobody = KnownTenants.of(None)
    assert who(nobody, authorization="Bearer acme-key").tenant.startswith("key-")


TOLD: dict[str, Any] = {
    "x_headway_tenant": "by-header",
    "x_headway_class": "chat",
    "x_headway_program": "P/1",
}


def test_headers_count_only_where_they_are_trusted() -> None:
    assert who(CLOSED, authorization="Bearer acme-key", **TOLD) == Identity("acme")
    found = who(TRUSTING, authorization="Bearer acme-key", **TOLD)
    assert found == Identity("by-header", "chat", "P/1")


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("x_headway_tenant", "x" * 64),
        ("x_headway_tenant", "UPPER"),
        ("x_headway_tenant", "a\n"),
        ("x_headway_tenant", ""),
        ("x_headway_class", "no class"),
        ("x_headway_program", "x" * 129),
        ("x_headway_program", "with space"),
        ("x_headway_program", "é"),
    ],
)
def test_a_header_that_no_policy_could_name_is_ignored(header: str, value: str) -> None:
    told: dict[str, Any] = {header: value}
    found = who(TRUSTING, authorization="Bearer acme-key", **told)
    assert found == Identity("acme")


@given(st.lists(st.tuples(st.sampled_from(sorted(TOLD)), st.binary())), st.binary())
def test_whatever_headers_say_names_stay_short_and_plain(
    told: list[tuple[str, bytes]], key: bytes
) -> None:
    sent = [(name.replace("_", "-").encode(), value) for name, value in told]
    sent.append((b"authorization", b"Bearer " + key))
    found = identify(sent, key_digest(sent), TRUSTING, keys_are_checked=True)
    assert len(found.tenant) <= 63
    for each in found:
        assert each is None or (each.isascii() and len(each) <= 128 and " " not in each)
