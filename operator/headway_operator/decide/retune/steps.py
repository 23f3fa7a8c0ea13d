"""How far one tick moves a limit."""

from __future__ import annotations

SMALLEST_STEP = 0.05
"""Smaller steps are not worth telling all pods, except onto the cap or the floor."""


def next_value(before: int, wanted: float, floor: int, cap: int) -> int | None:
    """The limit moved to what is wanted, None where that is not worth it."""
    after = min(cap, max(floor, int(wanted)))
    is_small = abs(wanted - before) < SMALLEST_STEP * before
    if after == before or (is_small and after not in (floor, cap)):
        return None
    return after


def below_cap(value: int, cap: int) -> int | None:
    """The value as an operating point has it: None at the cap."""
    return value if value < cap else None
