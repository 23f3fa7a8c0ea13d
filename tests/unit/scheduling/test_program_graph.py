"""Graphs of declared calls."""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.scheduling.programs import graph as module
from headway_runtime.scheduling.programs.graph import MAX_EDGES, MAX_NODES, Node, ProgramGraph

names = st.sampled_from("abcdefghij")
few = st.lists(names, max_size=4).map(tuple)
declarations = st.lists(st.tuples(names, few, few), max_size=25)


def predecessors(graph: ProgramGraph) -> dict[Node, set[Node]]:
    found: dict[Node, set[Node]] = {node: set() for node in graph._nodes.values()}
    for node in graph._nodes.values():
        for child in node.children:
            found[child].add(node)
    return found


def depths(graph: ProgramGraph) -> dict[Node, int]:
    """The same by the standard library's order."""
    before = predecessors(graph)
    found: dict[Node, int] = {}
    for node in TopologicalSorter(before).static_order():
        found[node] = max((found[each] + 1 for each in before[node]), default=0)
    return found


def declare(
    graph: ProgramGraph, name: str, parents: Iterable[str] = (), children: Iterable[str] = ()
) -> Node:
    node = graph.declare(name, parents, children)
    assert node is not None
    return node


def run(graph: ProgramGraph, name: str) -> None:
    node = declare(graph, name)
    graph.begin(node)
    graph.end(node)


@given(declarations)
def test_whatever_is_declared_the_depths_are_those_of_an_acyclic_graph(declared: list[Any]) -> None:
    graph = ProgramGraph()
    for each in declared:
        graph.declare(*each)
    expected = depths(graph)
    assert {node: node.depth for node in graph._nodes.values()} == expected
    assert graph.longest == max((depth + 1 for depth in expected.values()), default=0)


@given(declarations)
def test_only_edges_that_close_a_circle_are_left_out(declared: list[Any]) -> None:
    graph = ProgramGraph()
    for name, parents, children in declared:
        graph.declare(name, parents, children)
        for parent, child in [(p, name) for p in parents] + [(name, c) for c in children]:
            start, end = graph._nodes[parent], graph._nodes[child]
            if end in start.children:
                continue
            before = predecessors(graph)
            before[end].add(start)
            with pytest.raises(CycleError):
                TopologicalSorter(before).prepare()


@given(declarations, st.sets(names))
def test_the_critical_path_is_the_longest_chain_of_undone_calls(
    declared: list[Any], done: set[str]
) -> None:
    graph = ProgramGraph()
    for each in declared:
        graph.declare(*each)
    for name in done & set(graph._nodes):
        run(graph, name)

    def chain(node: Node) -> int:
        return 1 + max((chain(each) for each in node.children if not each.is_done), default=0)

    undone = [node for node in graph._nodes.values() if not node.is_done]
    assert graph.critical_path() == max(map(chain, undone), default=0)
    for node in undone:
        assert graph.calls_after(node) == chain(node) - 1
    assert graph.done == len(graph) - len(undone)
    assert graph.awaited == len([node for node in undone if not node.has_come])


def test_calls_may_be_declared_in_any_order() -> None:
    forwards, backwards = ProgramGraph(), ProgramGraph()
    pairs = list(pairwise("abcdef"))
    for parent, child in pairs:
        declare(forwards, parent, (), child)
    for parent, child in reversed(pairs):
        declare(backwards, parent, (), child)
    for graph in (forwards, backwards):
        assert [graph._nodes[each].depth for each in "abcdef"] == [0, 1, 2, 3, 4, 5]
        assert graph.critical_path() == 6


def test_the_parents_of_what_comes_are_done_even_if_another_engine_ran_them() -> None:
    graph = ProgramGraph()
    graph.begin(declare(graph, "here"))
    declare(graph, "c", ("here", "elsewhere"), ("later",))
    assert graph._nodes["elsewhere"].is_done
    # What is under way here is known not to be.
    assert not graph._nodes["here"].is_done
    assert not graph._nodes["later"].is_done
    assert graph.done == 1


def test_what_is_declared_against_the_order_makes_nothing_done() -> None:
    graph = ProgramGraph()
    declare(graph, "a", (), ("b",))
    declare(graph, "a", ("b",))
    assert graph.done == 0


def test_a_call_is_done_when_none_of_its_requests_is_under_way() -> None:
    graph = ProgramGraph()
    node = declare(graph, "a")
    graph.begin(node)
    graph.begin(node)
    graph.end(node)
    assert graph.done == 0
    graph.end(node)
    assert graph.done == 1
    graph.begin(node)
    assert graph.done == 0


def test_what_others_have_named_is_awaited_until_it_comes_or_is_done() -> None:
    graph = ProgramGraph()
    graph.declare("plan", (), ("work", "more"))
    assert graph.awaited == 2
    graph.declare("work", ("plan",), ("reduce",))
    assert graph.awaited == 2
    # It needs the answer of one that has run on another engine.
    graph.declare("reduce", ("work", "more"), ())
    assert graph.awaited == 0
    graph.declare("more", ("plan",), ("reduce",))
    assert graph.awaited == 0


def test_a_call_does_not_wait_for_itself() -> None:
    graph = ProgramGraph()
    assert declare(graph, "a", "a", "a").depth == 0


def test_a_program_has_a_bounded_number_of_calls() -> None:
    graph = ProgramGraph()
    for i in range(MAX_NODES):
        assert graph.declare(f"n{i}", (), ()) is not None
    assert graph.declare("one more", (), ()) is None
    assert graph.declare("n0", ("another",), ("n1",)) is not None
    assert len(graph) == MAX_NODES
    assert graph._nodes["n1"].depth == 1


def test_a_program_has_a_bounded_number_of_dependencies() -> None:
    graph = ProgramGraph()
    for i in range(MAX_NODES):
        graph.declare(f"n{i}", [f"n{j}" for j in range(max(0, i - 64), i)], ())
    edges = sum(len(each.children) for each in graph._nodes.values())
    assert edges == MAX_EDGES


def test_a_declaration_costs_a_bounded_number_of_visits(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ProgramGraph()
    for i in range(400):
        graph.declare(f"n{i}", (f"n{i - 1}",) if i else (), ())
    monkeypatch.setattr(module, "MAX_VISITS", 1_000)
    # Each of these makes all 400 calls deeper: two visits for each.
    for i in range(10):
        graph.declare(f"front{i}", (f"front{i - 1}",) if i else (), ())
    graph.declare("last", (), ())
    graph.declare("n0", [f"front{i}" for i in range(10)], ())
    assert graph._nodes["n0"].depth == 1
    assert {node: node.depth for node in graph._nodes.values()} == depths(graph)
