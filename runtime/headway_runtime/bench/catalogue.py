"""All scenarios by name."""

from __future__ import annotations

from collections.abc import Sequence

from headway_runtime.bench.classes.scenarios import CLASS_SCENARIOS
from headway_runtime.bench.scenarios import CAPACITY_SCENARIOS, SCENARIOS, Scenario

ALL: tuple[Scenario, ...] = (*SCENARIOS, *CAPACITY_SCENARIOS, *CLASS_SCENARIOS)


def named(names: Sequence[str]) -> list[Scenario]:
    """Scenarios by name, in the given order.

    Raises:
        ValueError: there is none of that name.
    """
    known = {each.name: each for each in ALL}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"unknown scenarios {unknown}; there are {', '.join(known)}")
    return [known[name] for name in names]
