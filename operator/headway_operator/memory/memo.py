"""Remembers the last result of each of a few computations about one thing.

It lives and dies with what is remembered of that, mostly of a service: a cache that all services
share would hold the objects of every generation of every service, until the process runs out of
memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

ArgumentT = TypeVar("ArgumentT")
ResultT = TypeVar("ResultT")


class Memo:
    """One result by name, kept for as long as its argument stays the same."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[Any, Any]] = {}

    def last(
        self, name: str, argument: ArgumentT, compute: Callable[[ArgumentT], ResultT]
    ) -> ResultT:
        """The result for that argument; computed if it is not the one of the last time."""
        known = self._last.get(name)
        if known is None or known[0] != argument:
            known = self._last[name] = (argument, compute(argument))
        result: ResultT = known[1]
        return result
