"""Where a request comes from: whose it is, and which program it is a part of."""

from __future__ import annotations

from typing import NamedTuple


class Call(NamedTuple):
    """A request as a part of a program, as its client declares it. Nothing of it is trusted.

    Attributes:
        program: id of the program, unique among those of its tenant.
        node: name of the request in its program; empty where it has none.
        parents: names of requests whose answers it needs.
        children: names of requests that will need its answer; None where it does not say whether
            there will be any.
        deadline_s: when the whole program is to be done, in seconds after its first request.
    """

    program: str
    node: str = ""
    parents: tuple[str, ...] = ()
    children: tuple[str, ...] | None = None
    deadline_s: float | None = None


class Origin(NamedTuple):
    """Where a request comes from.

    Attributes:
        tenant: who sent it; empty for all who cannot be told apart.
        call: its place in a program, None where it names none.
    """

    tenant: str = ""
    call: Call | None = None


UNKNOWN = Origin()
