"""How an engine tells the sidecar what its tenants asked for and got."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway_runtime.exchange.tenant_totals import TenantTotalsWriter, file_name, read_totals
from headway_runtime.scheduling.tenants.totals import OTHERS, PLACES, TenantTotals


def write(run_dir: Path, rank: int, totals: dict[str, TenantTotals]) -> None:
    writer = TenantTotalsWriter(run_dir / file_name(rank))
    writer.write(totals.items())
    writer.close()


def test_what_is_written_is_read(tmp_path: Path) -> None:
    full = {OTHERS: TenantTotals(2**40, 1, 2, 3)}
    full |= {f"{number:063}": TenantTotals(number, 0, 1, 2**63) for number in range(PLACES)}
    write(tmp_path, 0, full)
    assert read_totals(tmp_path) == full


def test_engine_processes_are_summed(tmp_path: Path) -> None:
    write(tmp_path, 0, {OTHERS: TenantTotals(), "a": TenantTotals(1, 1, 10, 2)})
    write(tmp_path, 1, {OTHERS: TenantTotals(3), "a": TenantTotals(2, 0, 5, 1)})
    assert read_totals(tmp_path) == {OTHERS: TenantTotals(3), "a": TenantTotals(3, 1, 15, 3)}


def test_an_engine_that_starts_again_counts_from_0(tmp_path: Path) -> None:
    write(tmp_path, 0, {"a": TenantTotals(1)})
    TenantTotalsWriter(tmp_path / file_name(0)).close()
    assert read_totals(tmp_path) == {}


@pytest.mark.parametrize("content", [b"", b"foreign" * 2000])
def test_a_file_that_cannot_be_read_counts_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / file_name(0)).write_bytes(content)
    (tmp_path / file_name(1)).mkdir()
    assert read_totals(tmp_path) == {}
