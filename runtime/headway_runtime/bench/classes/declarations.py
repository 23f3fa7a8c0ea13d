"""What clients declare of their programs, in truth and otherwise."""

from __future__ import annotations

import enum
import random
from collections.abc import Sequence

from headway_runtime.bench.classes.program_shapes import ProgramCall
from headway_runtime.scheduling.origin import Call

_FALSE_DEADLINE_S = 1.0


class Declared(str, enum.Enum):
    """How much of what is declared is true."""

    TRULY = "declared"
    """Names, parents and children."""
    UNDECLARED = "undeclared"
    """The program's id alone, as a session id tells it."""
    WRONGLY = "wrong"
    """Parents and children at random, circles among them."""
    MALICIOUSLY = "malicious"
    """Whatever might win an advantage: no call has anything behind it, everything is due at once,
    and calls that run side by side stand deep in one chain; or each call is a program of its own,
    which has been served nothing so far."""


def calls(
    program: str, shape: Sequence[ProgramCall], declared: Declared, rng: random.Random
) -> list[Call]:
    """What is declared for each call of a program.

    Args:
        program: its id.
        shape: its calls.
        declared: how true it is.
        rng: for what is made up.
    """
    numbers = range(len(shape))
    if declared is Declared.UNDECLARED:
        return [Call(program) for _ in numbers]
    if declared is Declared.WRONGLY:
        return [Call(program, str(each), _some(rng, shape), _some(rng, shape)) for each in numbers]
    if declared is Declared.MALICIOUSLY:
        if rng.getrandbits(1):
            return [Call(f"{program}.{each}", "last", deadline_s=1.0) for each in numbers]
        return [
            Call(program, str(each), _names([each - 1][:each]), (), _FALSE_DEADLINE_S)
            for each in numbers
        ]
    children: list[list[int]] = [[] for _ in numbers]
    for number, each in enumerate(shape):
        for parent in each.after:
            children[parent].append(number)
    return [
        Call(program, str(number), _names(each.after), _names(children[number]))
        for number, each in enumerate(shape)
    ]


def _some(rng: random.Random, shape: Sequence[ProgramCall]) -> tuple[str, ...]:
    return _names([rng.randrange(len(shape)) for _ in range(rng.randrange(4))])


def _names(numbers: Sequence[int]) -> tuple[str, ...]:
    return tuple(map(str, numbers))
