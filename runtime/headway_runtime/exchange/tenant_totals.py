"""The file in which an engine tells what its tenants asked for and got."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from headway_runtime.exchange.twin_block import TwinBlockFormat, TwinBlockWriter
from headway_runtime.scheduling.tenants.totals import PLACES, TenantTotals

_ENTRY = struct.Struct("<64s4Q")
_FORMAT = TwinBlockFormat(b"HEADWAYT", version=1, body_bytes=(PLACES + 1) * _ENTRY.size)


def file_name(rank: int) -> str:
    """Name of the file of the engine process with this data parallel rank."""
    return f"tenants-{rank}.bin"


class TenantTotalsWriter:
    """Writes them; from nothing when the engine starts.

    Args:
        path: where; an older file there is replaced.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._writer = TwinBlockWriter(path, _FORMAT)

    def write(self, totals: Iterable[tuple[str, TenantTotals]]) -> None:
        """Replace all totals."""
        # All names are ASCII and short: the policy's format and the door see to it.
        self._writer.write(b"".join(_ENTRY.pack(name.encode(), *each) for name, each in totals))

    def close(self) -> None:
        """Release the file, which stays for readers."""
        self._writer.close()


def read_totals(run_dir: Path) -> dict[str, TenantTotals]:
    """Totals of this pod by tenant. A file that cannot be read counts nothing."""
    found: dict[str, TenantTotals] = {}
    for path in sorted(run_dir.glob("tenants-*.bin")):
        for name, totals in _read(path):
            found[name] = found.get(name, TenantTotals()).plus(totals)
    return found


def _read(path: Path) -> Iterable[tuple[str, TenantTotals]]:
    try:
        with path.open("rb", buffering=0) as file:
            body = _FORMAT.read(file.fileno())
    except OSError:
        return
    for name, *numbers in _ENTRY.iter_unpack(body or b""):
        text = name.rstrip(b"\0").decode("ascii", errors="replace")
        if text:
            yield text, TenantTotals(*numbers)
