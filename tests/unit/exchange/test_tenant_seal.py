"""Names of tenants that nobody else can write."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.exchange import tenant_seal
from headway_runtime.exchange.tenant_seal import FILE_NAME, TenantSeal

SEAL = TenantSeal(b"secret")
names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(names)
def test_a_sealed_name_comes_back(name: str) -> None:
    assert SEAL.tenant_of(SEAL.stamped(name)) == name


@given(names)
def test_a_name_sealed_with_another_secret_is_nobodys(name: str) -> None:
    assert SEAL.tenant_of(TenantSeal(b"other").stamped(name)) is None


@given(names, names)
def test_a_seal_stands_for_its_own_name_only(one: str, other: str) -> None:
    mac = SEAL.stamped(one).partition(":")[0]
    assert SEAL.tenant_of(f"{mac}:{other}") == (one if one == other else None)


@given(anything)
def test_whatever_a_client_writes_is_nobodys(value: Any) -> None:
    assert SEAL.tenant_of(value) is None


@pytest.mark.parametrize("value", ["acme", ":acme", "", ":", "é:acme", "0" * 24 + ":acme"])
def test_a_name_without_its_seal_is_nobodys(value: str) -> None:
    assert SEAL.tenant_of(value) is None


def test_the_secret_is_not_told_with_a_name(tmp_path: Path) -> None:
    stamped = TenantSeal.of_run(tmp_path).stamped("acme")
    assert (tmp_path / FILE_NAME).read_text() not in stamped


def test_all_processes_of_a_run_have_one_secret(tmp_path: Path) -> None:
    first, second = TenantSeal.of_run(tmp_path), TenantSeal.of_run(tmp_path)
    assert second.tenant_of(first.stamped("acme")) == "acme"


def test_runs_have_secrets_of_their_own(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    one, other = (TenantSeal.of_run(tmp_path / name) for name in "ab")
    assert one.tenant_of(other.stamped("acme")) is None


def test_only_its_owner_may_read_the_secret(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        TenantSeal.of_run(tmp_path)
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == [FILE_NAME]


def test_of_two_that_make_the_secret_at_once_one_gives_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[TenantSeal] = []
    create = tenant_seal._create

    def late(path: Path) -> None:
        monkeypatch.setattr(tenant_seal, "_create", create)
        others.append(TenantSeal.of_run(tmp_path))
        create(path)

    monkeypatch.setattr(tenant_seal, "_create", late)
    own = TenantSeal.of_run(tmp_path)
    assert own.tenant_of(others[0].stamped("acme")) == "acme"
    assert [each.name for each in tmp_path.iterdir()] == [FILE_NAME]


@pytest.mark.parametrize("content", [b"", b"short", b"0" * 33, b"g" * 32])
def test_a_file_that_holds_no_secret_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(ValueError, match="holds no secret"):
        TenantSeal.of_run(tmp_path)
