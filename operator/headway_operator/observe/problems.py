"""What can be wrong with a service's pods, as values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

STALLS_AFTER_RESTARTS = 3
"""Restarts after which a crash is no longer expected to heal by itself."""

_NOT_SHOWN = "(not shown)"

# Text from outside reaches a condition only through one of these: a name, a path, a number.
_SHOWABLE = {
    "name": re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z"),
    "key": re.compile(r"[-._a-zA-Z0-9]{1,253}\Z"),
    "resource": re.compile(r"[a-z0-9]([-a-z0-9./]{0,126}[a-z0-9])?\Z"),
    "image": re.compile(r"[A-Za-z0-9][-\w./:@]{0,254}\Z", re.ASCII),
    "quantity": re.compile(r"[0-9][0-9.]{0,15}[a-zA-Z]{0,2}\Z"),
    "flag": re.compile(r"--?[A-Za-z0-9][-\w.]{0,63}\Z", re.ASCII),
    "version": re.compile(r"[0-9][-+.0-9a-zA-Z]{0,31}\Z"),
    "versions": re.compile(r"[0-9][0-9.]{0,15} to [0-9][0-9.]{0,15}\Z"),
    "path": re.compile(r"[/A-Za-z0-9][-\w./@+=]{0,254}\Z", re.ASCII),
    "word": re.compile(r"[A-Za-z][A-Za-z0-9_.:]{0,63}\Z"),
    "answer": re.compile(r"(HTTP [1-5][0-9]{2}|no answer)\Z"),
    "number": re.compile(r"[0-9]{1,12}\Z"),
}


class Tier(StrEnum):
    """How an error is dealt with."""

    TEMPORARY = "temporary"
    """It is retried and expected to pass."""
    RESOURCE = "resource"
    """Something is used up: GPUs, memory, quota."""
    BAD_DATA = "bad data"
    """What was declared cannot work; it must be changed."""
    SYSTEM = "system"
    """A program failed."""


@dataclass(frozen=True)
class Problem:
    """Something that keeps a service from being ready.

    Attributes:
        reason: one word from a fixed list.
        message: what is wrong and the remedy; holds only whitelisted text from outside.
        tier: how it is dealt with.
        stalls: it will not heal by itself.
    """

    reason: str
    message: str
    tier: Tier
    stalls: bool


def shown(kind: str, text: str | None) -> str:
    """The text if it looks like what it should be, otherwise a stand-in."""
    return text if text and _SHOWABLE[kind].match(text) else _NOT_SHOWN
