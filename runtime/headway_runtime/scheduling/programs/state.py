"""One program: what was served to it, what it declared, and where in it a call is."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from headway_runtime.scheduling.origin import Call
from headway_runtime.scheduling.programs import priority
from headway_runtime.scheduling.programs.graph import Node, ProgramGraph
from headway_runtime.scheduling.programs.priority import Terms, Weights

ProgramKey = tuple[str, str]
"""Tenant and the program's id."""


class Position(NamedTuple):
    """Where in its program a call is when it arrives.

    Attributes:
        node: what it declared; None where it has no name, or one too many.
        depth: calls on the longest chain before it; where it names none, of all that are done.
        calls_after: calls on the longest chain that is known to come after it.
        terms: what its priority is made of.
    """

    node: Node | None
    depth: int
    calls_after: int
    terms: Terms


class RunningCall:
    """A request of a program, from its arrival to its end.

    Attributes:
        program: what it is a part of.
        node: the call that it is a request of, None where that has no name.
        depth: calls on the longest chain before it.
        arrival_s: when it came, seconds since the epoch, as all times here.
        due_s: when it is due.
        service_before: weighted tokens that were served on the way to it.
        service_tokens: weighted tokens that were served to it.
        started_s: when it was first served.
    """

    __slots__ = (
        "arrival_s",
        "depth",
        "due_s",
        "node",
        "program",
        "service_before",
        "service_tokens",
        "started_s",
    )

    def __init__(
        self, program: Program, position: Position, arrival_s: float, due_s: float
    ) -> None:
        self.program = program
        self.node = position.node
        self.depth = position.depth
        self.arrival_s = arrival_s
        self.due_s = due_s
        self.service_before = program.service_tokens
        self.service_tokens = 0.0
        self.started_s: float | None = None


class Program:
    """A program that is known.

    A request without a name follows what is done when it comes: it cannot need an answer that was
    not given. So threads that run side by side count like the longest one, be they declared or not.
    That is Autellix's rule for them, with one number for a program (arXiv 2502.13965, algorithm 1):
    a call has the service of its program when it comes, and when it ends its program has at least
    that and the call's own. Declared parents are not asked for it: naming early ones would make
    every call look like one of a program that has just begun.

    Attributes:
        key: whose it is, and its id.
        weights: how its calls are ranked, from its first to its last.
        side: on which side of a comparison it is, see :mod:`priority_learning`.
        first_arrival_s: when its first call came.
        deadline_s: when all of it is due; None where no call declared it.
        under_way: ids of its requests that have not ended.
        last_end_s: when one of them last ended.
        service_tokens: weighted tokens served on the longest chain of calls that are done.
        there_s: time from arrival to end, summed over its requests that have ended.
        served_s: time from when each was first served, likewise.
        ended_calls: requests that those sums are of.
    """

    __slots__ = (
        "_declares_children",
        "_depth_done",
        "_graph",
        "_unnamed",
        "_unnamed_done",
        "deadline_s",
        "ended_calls",
        "first_arrival_s",
        "key",
        "last_end_s",
        "served_s",
        "service_tokens",
        "side",
        "there_s",
        "under_way",
        "weights",
    )

    def __init__(self, key: ProgramKey, weights: Weights, side: int, arrival_s: float) -> None:
        self.key = key
        self.weights = weights
        self.side = side
        self.first_arrival_s = arrival_s
        self.deadline_s: float | None = None
        self.under_way: set[str] = set()
        self.last_end_s = arrival_s
        self.service_tokens = 0.0
        self.there_s = 0.0
        self.served_s = 0.0
        self.ended_calls = 0
        self._graph = ProgramGraph()
        self._declares_children = False
        self._unnamed = 0
        self._unnamed_done = 0
        self._depth_done = -1

    @property
    def critical_path(self) -> int:
        """Calls on the longest chain that is declared and not done."""
        return self._graph.critical_path()

    def enter(self, request_id: str, call: Call, prompt_tokens: int = 0) -> Position:
        """A request of the program has come: take in what it declares, and say where it is.

        Its age is what was served before it or what its prompt is, whichever is more: the prompt
        tells first calls apart, of which nothing else is known, and what a later one begins with
        was served before.
        """
        declared = call.deadline_s
        if self.deadline_s is None and declared is not None and 0 < declared < inf:
            self.deadline_s = self.first_arrival_s + declared
        self.under_way.add(request_id)
        children = call.children or ()
        node = self._graph.declare(call.node, call.parents, children) if call.node else None
        if node is None:
            self._unnamed += 1
            return self._position(None, self._depth_done + 1, 0, prompt_tokens)
        self._graph.begin(node)
        self._declares_children = self._declares_children or call.children is not None
        depth = node.depth or self._depth_done + 1
        return self._position(node, depth, self._graph.calls_after(node), prompt_tokens)

    def leave(self, request_id: str, call: RunningCall, at_s: float) -> float:
        """A request of the program has ended, however it did; how long it was served."""
        self.under_way.discard(request_id)
        self.last_end_s = at_s
        if call.node is None:
            self._unnamed_done += 1
        else:
            self._graph.end(call.node)
        self._depth_done = max(self._depth_done, call.depth)
        self.service_tokens = max(self.service_tokens, call.service_before + call.service_tokens)
        started_s = call.arrival_s if call.started_s is None else call.started_s
        self.there_s += max(0.0, at_s - call.arrival_s)
        served_s = max(0.0, at_s - started_s)
        self.served_s += served_s
        self.ended_calls += 1
        return served_s

    def _position(
        self, node: Node | None, depth: int, calls_after: int, prompt_tokens: int
    ) -> Position:
        graph = self._graph
        if self._declares_children:
            known = len(graph) + self._unnamed
            depth_term = priority.depth_among_known(known - graph.done - self._unnamed_done - 1)
            if graph.awaited:
                # What is known to come is the least that does: an agent names its next call alone.
                depth_term *= priority.depth_among_past(depth)
        else:
            depth_term = priority.depth_among_past(depth)
        progress = 0.0
        if node is not None:
            progress = priority.progress(node.depth + 1 + calls_after, graph.longest)
        terms = Terms(priority.base(max(self.service_tokens, prompt_tokens)), depth_term, progress)
        return Position(node, depth, calls_after, terms)
