"""Takes JSON apart, checking every field. No message repeats what a stranger may have sent."""

from __future__ import annotations

import base64
import binascii
import enum
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from headway_runtime.policy.bounds import MAX_INTEGER

_Member = TypeVar("_Member", bound=enum.Enum)
_Item = TypeVar("_Item")


class PolicyFormatError(ValueError):
    """A policy document that cannot be read. The message names the field and what it must be."""


def parse_object(where: str, text: bytes) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        PolicyFormatError: the text is none. The text itself is not repeated.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise PolicyFormatError(f"{where}: is not JSON") from None
    if not isinstance(value, dict):
        raise PolicyFormatError(f"{where}: must be an object")
    return value


class Fields:
    """Takes fields out of a JSON object one by one, so that what is left over is unknown.

    Every method raises :class:`PolicyFormatError` for a field that is missing or not what it must
    be.
    """

    def __init__(self, where: str, values: Mapping[str, Any]) -> None:
        self._where = where
        self._values = dict(values)

    def take(self, name: str) -> Any:
        """The value of a field, whatever it is."""
        try:
            return self._values.pop(name)
        except KeyError:
            raise PolicyFormatError(f"{self._where}.{name}: is missing") from None

    def integer(self, name: str, *, minimum: int, maximum: int = MAX_INTEGER) -> int:
        """An integer within bounds."""
        value = self.take(name)
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
            raise self._error(name, f"must be an integer from {minimum} to {maximum}")
        return value

    def optional_integer(
        self, name: str, *, minimum: int, maximum: int = MAX_INTEGER
    ) -> int | None:
        """An integer within bounds, or null."""
        if self._is_null(name):
            return None
        return self.integer(name, minimum=minimum, maximum=maximum)

    def text(self, name: str, pattern: re.Pattern[str]) -> str:
        """A string that matches a pattern."""
        value = self.take(name)
        if not isinstance(value, str) or not pattern.match(value):
            raise self._error(name, f"must be a string like {pattern.pattern}")
        return value

    def optional_text(self, name: str, pattern: re.Pattern[str]) -> str | None:
        """A string that matches a pattern, or null."""
        return None if self._is_null(name) else self.text(name, pattern)

    def flag(self, name: str) -> bool:
        """A boolean."""
        value = self.take(name)
        if not isinstance(value, bool):
            raise self._error(name, "must be true or false")
        return value

    def one_of(self, name: str, kind: type[_Member]) -> _Member:
        """A value of an enumeration of strings."""
        value = self.take(name)
        try:
            return kind(value)
        except ValueError:
            known = ", ".join(member.value for member in kind)
            raise self._error(name, f"must be one of {known}") from None

    def base64(self, name: str) -> bytes:
        """Bytes in base64."""
        value = self.take(name)
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise self._error(name, "must be base64") from None

    def within(self, name: str) -> Fields:
        """The fields of an object."""
        return _fields(f"{self._where}.{name}", self.take(name))

    def each(self, name: str, most: int, read: Callable[[Fields], _Item]) -> tuple[_Item, ...]:
        """The items of a list of objects, each read by ``read``, which may leave no field over."""
        value = self.take(name)
        if not isinstance(value, list) or len(value) > most:
            raise self._error(name, f"must be a list of at most {most}")
        items = []
        for number, each in enumerate(value):
            fields = _fields(f"{self._where}.{name}[{number}]", each)
            items.append(read(fields))
            fields.refuse_unknown()
        return tuple(items)

    def refuse_unknown(self) -> None:
        """Refuse fields that were not taken."""
        if self._values:
            # Only the count: a field's name comes from the sender.
            raise PolicyFormatError(f"{self._where}: has {len(self._values)} unknown field(s)")

    def _is_null(self, name: str) -> bool:
        """Whether a field is there and null; it is taken then."""
        if self._values.get(name, False) is None:
            del self._values[name]
            return True
        return False

    def _error(self, name: str, problem: str) -> PolicyFormatError:
        return PolicyFormatError(f"{self._where}.{name}: {problem}")


def _fields(where: str, value: Any) -> Fields:
    if not isinstance(value, dict):
        raise PolicyFormatError(f"{where}: must be an object")
    return Fields(where, value)
