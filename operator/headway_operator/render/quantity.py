"""Arithmetic on Kubernetes quantities."""

from __future__ import annotations

import re
from decimal import Decimal

_SUFFIXES = {
    "": 1,
    "m": Decimal("0.001"),
    **{suffix: 1000**power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": 1024**power for power, suffix in enumerate("KMGTPE", start=1)},
}
_QUANTITY = re.compile(r"([0-9.]+)([a-zA-Z]*|[eE][0-9]+)\Z")
_MEBIBYTE = 1024**2


def in_bytes(quantity: str) -> int:
    """A memory quantity in bytes, rounded down.

    Raises:
        ValueError: it is no quantity.
    """
    return in_units(quantity)


def in_units(quantity: str) -> int:
    """A quantity of what comes one by one, rounded down.

    Raises:
        ValueError: it is no quantity.
    """
    found = _QUANTITY.match(quantity)
    if found is None:
        raise ValueError(f"not a quantity: {quantity!r}")
    number, suffix = found.groups()
    if suffix not in _SUFFIXES:
        return int(Decimal(quantity))
    return int(Decimal(number) * _SUFFIXES[suffix])


def half_in_mebibytes(quantity: str) -> str:
    """Half of a memory quantity, in whole Mi and at least one."""
    return f"{max(1, in_bytes(quantity) // 2 // _MEBIBYTE)}Mi"
