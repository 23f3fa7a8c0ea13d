"""What an engine has done so far, so that each request can tell what went on while it waited.

Requests note what was done when they began to wait and when that was over; the difference tells
whom they waited for. So a step costs what is done in it and not who waits meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from headway_runtime.scheduling.reason import Reason

MOST_TENANTS = 64
"""Groups that are told apart by tenant; further tenants of a class count together."""

MOST_GROUPS = 128
"""Groups that are told apart at all; further ones count as one without a name."""

OTHERS = "*"
"""Stands for the tenants that are not told apart."""

REASONS = tuple(Reason)
"""The reasons of plans, by their numbers here."""

_COUNT_BITS = 48
_ONE_STEP = {each: 1 << _COUNT_BITS * number for number, each in enumerate(REASONS)}
"""Steps are counted by reason in one integer, of which each reason has some bits: what was counted
between two moments is then a single subtraction, for each request that is admitted."""


class Group(NamedTuple):
    """Requests that are counted together.

    Attributes:
        class_name: their class of traffic; empty without one.
        tenant: whose they are; empty for all who cannot be told apart.
    """

    class_name: str = ""
    tenant: str = ""


NO_GROUP = Group()
"""Requests without a class whose tenants cannot be told apart."""


class Reading(NamedTuple):
    """What was done up to a moment.

    Attributes:
        steps: steps with any work in them.
        prompt_tokens: tokens of prompts that were computed.
        tokens: the same by number of the group whose prompts they were of; shorter than ``groups``
            when some came later.
        reasons: steps by the reason why they were planned so; see :func:`steps_by_reason`.
        groups: the groups by number; more are appended later.
    """

    steps: int
    prompt_tokens: int
    tokens: tuple[int, ...]
    reasons: int
    groups: list[Group]

    def tokens_since(self, earlier: Reading) -> dict[Group, int]:
        """Prompt tokens of each group that were computed since then."""
        if self.tokens is earlier.tokens:
            return {}
        before = earlier.tokens + (0,) * (len(self.tokens) - len(earlier.tokens))
        pairs = zip(self.groups, self.tokens, before, strict=False)
        return {group: now - then for group, now, then in pairs if now != then}


def steps_by_reason(counted: int) -> dict[int, int]:
    """Steps by number of the reason, of a difference between two readings' reasons."""
    counts = {}
    number = 0
    while counted:
        steps = counted & ((1 << _COUNT_BITS) - 1)
        if steps:
            counts[number] = steps
        counted >>= _COUNT_BITS
        number += 1
    return counts


class WorkDone:
    """Counts what an engine does."""

    def __init__(self) -> None:
        self._groups = [Group("", OTHERS)]
        self._numbers = {self._groups[0]: 0}
        self._tokens = [0]
        self._reasons = 0
        self._steps = 0
        self._prompt_tokens = 0
        # Made when somebody asks, and kept for whoever asks next.
        self._reading: Reading | None = None
        self._tokens_read: tuple[int, ...] | None = None

    def number(self, group: Group) -> int:
        """The number that this group is counted under."""
        known = self._numbers.get(group)
        return self._new(group) if known is None else known

    def step(self, reasons: Iterable[Reason] = ()) -> None:
        """A step was scheduled, and planned so for these reasons."""
        self._steps += 1
        for each in reasons:
            self._reasons += _ONE_STEP[each]
        self._reading = None

    def chunk(self, number: int, tokens: int) -> None:
        """So many tokens of a prompt of this group are computed."""
        self._tokens[number] += tokens
        self._prompt_tokens += tokens
        self._reading = self._tokens_read = None

    @property
    def reading(self) -> Reading:
        """What was done so far. Requests that note it at the same time share it."""
        if self._reading is None:
            tokens = self._tokens_read = self._tokens_read or tuple(self._tokens)
            self._reading = Reading(
                self._steps, self._prompt_tokens, tokens, self._reasons, self._groups
            )
        return self._reading

    def _new(self, group: Group) -> int:
        if len(self._groups) >= MOST_TENANTS and group.tenant not in ("", OTHERS):
            return self.number(Group(group.class_name, OTHERS))
        if len(self._groups) >= MOST_GROUPS:
            return 0
        number = self._numbers[group] = len(self._groups)
        self._groups.append(group)
        self._tokens.append(0)
        self._reading = self._tokens_read = None
        return number


NOTHING_DONE = WorkDone().reading
"""What an engine has done before its first step."""
