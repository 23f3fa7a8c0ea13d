"""The calls of one program and what they wait for: a directed acyclic graph that only grows.

Clients declare it piece by piece, in any order, and nothing of it is trusted. An edge that would
close a circle, or that is one too many, is left out; the rest stays.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

MAX_NODES = 1_024
MAX_EDGES = 8_192

MAX_VISITS = 2_048
"""So many calls and edges are looked at for one declaration, which is about a millisecond, and one
edge more. Only declarations out of order come near it."""


class Node:
    """One declared call.

    Attributes:
        children: calls that need its answer.
        depth: calls on the longest chain before it.
        under_way: its requests that have not ended: it may be tried again, or sampled twice.
        has_come: it has said itself what comes after it; else others have named it.
        is_done: it was run and nothing of it is under way.
    """

    __slots__ = ("children", "depth", "has_come", "is_done", "under_way")

    def __init__(self) -> None:
        self.children: dict[Node, None] = {}
        self.depth = 0
        self.under_way = 0
        self.has_come = False
        self.is_done = False


class ProgramGraph:
    """The declared calls of a program.

    Attributes:
        longest: calls on the longest chain.
        done: calls that are done.
        awaited: calls that are not done and have not come: what follows them nobody has said.
    """

    def __init__(self) -> None:
        self.longest = 0
        self.done = 0
        self.awaited = 0
        self._nodes: dict[str, Node] = {}
        self._edges = 0

    def __len__(self) -> int:
        return len(self._nodes)

    def declare(self, name: str, parents: Iterable[str], children: Iterable[str]) -> Node | None:
        """Take in what a request of a call says when it comes.

        Its parents are done, whoever ran them: it needs their answers. Of a program that is spread
        over several engines each one sees but a part.

        Costs O(1) for each edge that extends the graph, and O(n log n) for one that makes n known
        calls deeper.

        Returns:
            The call, None where the program has too many.
        """
        node = self._node(name)
        if node is None:
            return None
        if not node.has_come:
            node.has_come = True
            self.awaited -= not node.is_done
        visits = MAX_VISITS
        for each in parents:
            parent = self._node(each)
            if parent is not None:
                visits = self._link(parent, node, visits)
                if node in parent.children and not parent.under_way:
                    self._set_done(parent, is_done=True)
        for each in children:
            child = self._node(each)
            if child is not None:
                visits = self._link(node, child, visits)
        return node

    def begin(self, node: Node) -> None:
        """One more request of the call is under way."""
        node.under_way += 1
        self._set_done(node, is_done=False)

    def end(self, node: Node) -> None:
        """A request of the call has ended."""
        node.under_way -= 1
        self._set_done(node, is_done=node.under_way <= 0)

    def critical_path(self) -> int:
        """Calls on the longest chain of those that are not done, in O(V+E)."""
        return _longest_chain(each for each in self._nodes.values() if not each.is_done)

    @staticmethod
    def calls_after(node: Node) -> int:
        """Calls on the longest chain of those that are not done after a call.

        Costs O(V+E) of the part that it is waited for by.
        """
        return _longest_chain(each for each in node.children if not each.is_done)

    def _node(self, name: str) -> Node | None:
        node = self._nodes.get(name)
        if node is None and len(self._nodes) < MAX_NODES:
            node = self._nodes[name] = Node()
            self.awaited += 1
            self.longest = max(self.longest, 1)
        return node

    def _set_done(self, node: Node, *, is_done: bool) -> None:
        self.done += is_done - node.is_done
        if not node.has_come:
            self.awaited -= is_done - node.is_done
        node.is_done = is_done

    def _link(self, parent: Node, child: Node, visits: int) -> int:
        """Let a call wait for another one, unless it cannot be; what is left of the visits."""
        if child in parent.children or self._edges >= MAX_EDGES:
            return visits
        if child.depth <= parent.depth:
            deeper, visits = _deeper(parent, child, visits)
            if not deeper:
                return visits
            for node, depth in deeper.items():
                node.depth = depth
                self.longest = max(self.longest, depth + 1)
        parent.children[child] = None
        self._edges += 1
        return visits


def _deeper(parent: Node, child: Node, visits: int) -> tuple[dict[Node, int], int]:
    """Depths that change when a call waits for another one; none for a circle or too many.

    Calls are looked at in order of their old depths, which is an order in which all before a call
    come before it, so each is looked at once. If the child came before the parent, the parent would
    be deeper than itself and is met on the way.

    Returns:
        The depths, and what is left of the visits.
    """
    depths = {child: parent.depth + 1}
    upcoming = [(child.depth, 0, child)]
    pushed = 0
    while upcoming:
        _, _, node = heapq.heappop(upcoming)
        visits -= 1 + len(node.children)
        if node is parent or visits < 0:
            return {}, visits
        depth = depths[node] + 1
        for each in node.children:
            if depths.get(each, each.depth) >= depth:
                continue
            if each not in depths:
                pushed += 1
                heapq.heappush(upcoming, (each.depth, pushed, each))
            depths[each] = depth
    return depths, visits


def _longest_chain(starts: Iterable[Node]) -> int:
    """Calls on the longest chain of undone ones from any of these; each edge is followed once."""
    chains: dict[Node, int] = {}
    longest = 0
    for start in starts:
        stack = [start]
        while stack:
            node = stack[-1]
            if node in chains:
                stack.pop()
                continue
            left = [each for each in node.children if not each.is_done]
            missing = [each for each in left if each not in chains]
            if missing:
                stack.extend(missing)
                continue
            chains[node] = 1 + max((chains[each] for each in left), default=0)
            stack.pop()
        longest = max(longest, chains.get(start, 0))
    return longest
