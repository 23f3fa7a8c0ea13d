"""A property that is worked out once for each object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

_Value = TypeVar("_Value")


class Once(Generic[_Value]):
    """``functools.cached_property`` without the lock that it takes before Python 3.12.

    For objects that never change: an attribute of the same name takes its place. What plans use is
    looked at in one thread, and in a plan of many small steps that lock is one of the larger ones.

    Args:
        work_out: the property's function.
    """

    def __init__(self, work_out: Callable[[Any], _Value]) -> None:
        self._work_out = work_out
        self.__doc__ = work_out.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> _Value:
        found = instance.__dict__[self._name] = self._work_out(instance)
        return found
