"""What is known of a request from its arrival to its end, whatever its class."""

from __future__ import annotations

from typing import NamedTuple

from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.origin import Origin
from headway_runtime.scheduling.programs.programs import Programs


class Standing(NamedTuple):
    """Whose a request is, and when its program has it due.

    Attributes:
        tenant: whose it is; empty for all who cannot be told apart.
        program_due_s: when its program has it due, seconds since the epoch; None if it is in none.
        has_deadline: whether its program has a deadline to keep.
    """

    tenant: str = ""
    program_due_s: float | None = None
    has_deadline: bool = False

    def due_s(self, promised: TrafficClass | None) -> float | None:
        """When it is due by its program; None where its class decides.

        Its class may change while it waits, and what a class promises goes before any priority.
        """
        has_objective = promised is not None and promised.deadline_s is not None
        return self.program_due_s if self.has_deadline or not has_objective else None


NOBODYS = Standing()


def standing_of(
    programs: Programs, request_id: str, origin: Origin, arrival_s: float, prompt_tokens: int
) -> Standing:
    """The standing of a request that has come.

    Args:
        programs: are told of it if it is a part of one.
        request_id: the engine's id of it.
        origin: where it comes from.
        arrival_s: when it came, seconds since the epoch.
        prompt_tokens: length of its prompt.
    """
    tenant, call = origin
    if call is None:
        return Standing(tenant)
    due_s = programs.arrived(request_id, tenant, call, arrival_s, prompt_tokens)
    program = programs.program(tenant, call.program)
    has_deadline = program is not None and program.deadline_s is not None
    return Standing(tenant, due_s, has_deadline)
