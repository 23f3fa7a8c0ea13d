"""A planner that is compared with Headway's, and what it needs besides."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from headway_runtime.scheduling.planner import Planner


@dataclass(frozen=True)
class Rival:
    """A planner in the place of Headway's.

    Attributes:
        planner: plans the steps.
        in_force: a context that is entered before the first request and left after the last one.
    """

    planner: Planner
    in_force: Callable[[], AbstractContextManager[None]] = nullcontext
