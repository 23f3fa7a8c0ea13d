"""Programs of requests: when each of their calls is due (design T5 and T6).

A program is what the calls of one tenant with one program id have in common. What is kept of it is
a number for what it was served and the graph of what its calls declared, so a call costs what it
declares, and tokens cost one addition however many they are.
"""

from __future__ import annotations

from collections.abc import Iterable

from headway_runtime.policy import PriorityCoefficients
from headway_runtime.scheduling.origin import Call
from headway_runtime.scheduling.programs.learning import PriorityLearning
from headway_runtime.scheduling.programs.priority import FIRST, due_s
from headway_runtime.scheduling.programs.shelf import ProgramShelf
from headway_runtime.scheduling.programs.state import Position, Program, ProgramKey, RunningCall

MOST_PROGRAMS = 4_096

MOST_RUNNING = 65_536
"""Requests of programs that are followed at once; any more are ranked like first calls."""

IDLE_S = 1_800.0
"""A program without a request for so long is forgotten; if it comes back, it starts anew. Longer
than tools take as a rule, and about as long as its prefix can hope to stay in the cache."""

FIRST_CALL_S = 5.0
"""Service time of a call before any has ended."""

MEAN_OVER_CALLS = 50
"""Calls that the mean service time of all programs is taken over."""

PRIOR_CALLS = 2
"""That mean counts like so many calls of a program besides its own."""


class Programs:
    """The programs that an engine's requests are parts of.

    Times are seconds since the epoch. They are set when a request arrives and stay, so waiting
    changes nothing. Order by them never lets a request wait for one that arrived more than
    ``HORIZON_S`` later, whatever anybody declares.

    Attributes:
        learning: the coefficients that programs begin with.
        mean_call_s: mean time from when a call is first served to its end.
    """

    def __init__(
        self, seed: int = 0, *, most_programs: int = MOST_PROGRAMS, idle_s: float = IDLE_S
    ) -> None:
        self.learning = PriorityLearning(seed=seed)
        self.mean_call_s = FIRST_CALL_S
        self._idle_s = idle_s
        self._shelf = ProgramShelf(most_programs)
        self._running: dict[str, RunningCall] = {}

    @property
    def program_count(self) -> int:
        """Programs that are known."""
        return len(self._shelf)

    def adopt(self, coefficients: PriorityCoefficients) -> None:
        """Rank by other coefficients: programs under way keep those they began with."""
        self.learning.adopt(coefficients)

    def program(self, tenant: str, program_id: str) -> Program | None:
        """What is known of a program."""
        return self._shelf.get((tenant, program_id))

    def arrived(
        self,
        request_id: str,
        tenant: str,
        call: Call | None,
        arrival_s: float,
        prompt_tokens: int = 0,
    ) -> float:
        """A request without an objective of its own has come.

        Args:
            request_id: the engine's id of it; one that is known keeps what it got.
            tenant: who sent it.
            call: its place in a program, None where it names none.
            arrival_s: when it came.
            prompt_tokens: length of its prompt.

        Returns:
            When it is due: at the latest end that lets its program keep its deadline, if that has
            one and the calls after it take as long as calls do; else by its priority.
        """
        for each in self._shelf.idle_before(arrival_s - self._idle_s):
            self._forget(each)
        if call is None:
            return due_s(arrival_s, self.learning.weights, FIRST)
        known = self._running.get(request_id)
        if known is not None:
            return known.due_s
        if len(self._running) >= MOST_RUNNING:
            return due_s(arrival_s, self.learning.weights, FIRST)
        program = self._begin((tenant, call.program), arrival_s)
        position = program.enter(request_id, call, prompt_tokens)
        due = self._due_s(program, position, arrival_s)
        self._running[request_id] = RunningCall(program, position, arrival_s, due)
        return due

    def served(self, request_id: str, weighted_tokens: float, at_s: float | None = None) -> None:
        """A request got tokens: O(1), however many.

        Args:
            request_id: which one.
            weighted_tokens: see :func:`priority.weighted_tokens`.
            at_s: when; the first one is when its service began, without it its arrival is.
        """
        running = self._running.get(request_id)
        if running is None:
            return
        running.service_tokens += weighted_tokens
        if running.started_s is None:
            running.started_s = at_s

    def ended(self, request_ids: Iterable[str], at_s: float) -> None:
        """Requests have ended, however they did; those of no program are passed over."""
        for each in request_ids:
            running = self._running.pop(each, None)
            if running is None:
                continue
            program = running.program
            served_s = program.leave(each, running, at_s)
            self.mean_call_s += (served_s - self.mean_call_s) / MEAN_OVER_CALLS
            if not program.under_way:
                self._shelf.rest(program)

    def _begin(self, key: ProgramKey, arrival_s: float) -> Program:
        program = self._shelf.use(key)
        if program is None:
            side = self.learning.side()
            program = Program(key, self.learning.weights_on(side), side, arrival_s)
            gone = self._shelf.add(program)
            if gone is not None:
                self._forget(gone)
        return program

    def _due_s(self, program: Program, position: Position, arrival_s: float) -> float:
        if program.deadline_s is None:
            return due_s(arrival_s, program.weights, position.terms)
        calls = program.ended_calls + PRIOR_CALLS
        call_s = (program.served_s + PRIOR_CALLS * self.mean_call_s) / calls
        # Not before it came: the past would let it overtake what has waited for ever.
        return max(arrival_s, program.deadline_s - position.calls_after * call_s)

    def _forget(self, program: Program) -> None:
        """A program has gone from the shelf: its running requests are in no program any more."""
        for each in program.under_way:
            del self._running[each]
        if program.served_s > 0:
            self.learning.finished(program.side, program.there_s, program.served_s)
