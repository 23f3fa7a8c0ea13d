"""Least attained service of programs, after Autellix.

M. Luo et al., "Autellix: An Efficient Serving Engine for LLM Agents as General Programs" (arXiv
2502.13965), algorithm 1. As there:

- A table of programs holds what each was served: the time its calls have run. PLAS counts the sum
  over its completed calls; ATLAS, for programs whose calls run side by side, the longest chain:
  what was there when the call came, and the call's own time.
- A call goes into a queue by what its program was served when it came, out of several with bounds
  that grow; the first queue goes first, in each the earliest call.
- A call whose program and it have waited for at least so many times what they were served goes into
  the first queue.

Differences: a call that runs is not demoted when its quantum is used up, since what runs is not
preempted here (see :mod:`headway_runtime.bench.rivals.admission_rule`); it counts for its program's
next call alone. Bounds and the ratio are not printed in the paper; these are tuned on the scenarios
they are measured on. A call without a program is a program of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nsmallest

from headway_runtime.bench.rivals.admission_rule import LOOKAHEAD, Newcomer

BOUNDS_S = (8.0, 16.0, 64.0)
"""Upper bounds of the queues, in seconds of service; the last queue has none."""

STARVED = 20.0
"""Waiting over service from which on a call goes first (the paper's beta)."""

_LONGEST_STEP_S = 1.0


@dataclass
class _Program:
    """A row of the table.

    Attributes:
        served_s: what its calls were served, as far as they have ended.
        waited_s: what they have waited, as far as they were admitted.
    """

    served_s: float = 0.0
    waited_s: float = 0.0


@dataclass
class _Running:
    program: _Program
    began_with_s: float
    served_s: float = 0.0


class LeastAttainedService:
    """Admits calls of the programs that were served least.

    Implements :class:`headway_runtime.bench.rivals.admission_rule.AdmissionRule`.

    Args:
        by_longest_chain: ATLAS instead of PLAS.
    """

    def __init__(self, *, by_longest_chain: bool = False) -> None:
        self._by_longest_chain = by_longest_chain
        self._programs: dict[tuple[str, str], _Program] = {}
        self._waiting: dict[str, tuple[Newcomer, _Program, int]] = {}
        self._running: dict[str, _Running] = {}
        self._step: tuple[float, list[str]] = (0.0, [])

    def arrived(self, newcomer: Newcomer) -> None:
        """A request waits from now on."""
        program = self._program(newcomer)
        level = bisect_right(BOUNDS_S, program.served_s)
        self._waiting[newcomer.request_id] = (newcomer, program, level)

    def stepped(self, tokens: Iterable[tuple[str, int]], now_s: float) -> None:
        """A step was decided; the one before has taken the time until now."""
        began_s, served = self._step
        for request_id in served:
            if request_id in self._running:
                taken_s = min(now_s - began_s, _LONGEST_STEP_S)
                self._running[request_id].served_s += taken_s
        ids = [request_id for request_id, _ in tokens]
        for request_id in ids:
            if request_id in self._waiting:
                newcomer, program, _ = self._waiting.pop(request_id)
                program.waited_s += now_s - newcomer.arrival_s
                self._running[request_id] = _Running(program, program.served_s)
        self._step = (now_s, ids)

    def ended(self, request_id: str) -> None:
        """A request has ended."""
        self._waiting.pop(request_id, None)
        call = self._running.pop(request_id, None)
        if call is None:
            return
        program = call.program
        if self._by_longest_chain:
            program.served_s = max(program.served_s, call.began_with_s + call.served_s)
        else:
            program.served_s += call.served_s

    def waits(self, request_id: str) -> bool:
        """Whether this request waits for its first admission."""
        return request_id in self._waiting

    def first(self, now_s: float) -> list[str]:
        """Ids of the requests to admit next."""
        keys = (
            (self._level(newcomer, program, level, now_s), newcomer.arrival_s, request_id)
            for request_id, (newcomer, program, level) in self._waiting.items()
        )
        return [request_id for _, _, request_id in nsmallest(LOOKAHEAD, keys)]

    def _level(self, newcomer: Newcomer, program: _Program, level: int, now_s: float) -> int:
        waited_s = program.waited_s + now_s - newcomer.arrival_s
        is_starved = program.served_s > 0 and waited_s >= STARVED * program.served_s
        return 0 if is_starved else level

    def _program(self, newcomer: Newcomer) -> _Program:
        call = newcomer.origin.call
        if call is None:
            return _Program()
        # Nobody may add to, or hide behind, what another tenant's program was served.
        return self._programs.setdefault((newcomer.origin.tenant, call.program), _Program())
