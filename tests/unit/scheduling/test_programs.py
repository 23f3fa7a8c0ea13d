"""Programs: when each of their calls is due."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway_runtime.policy import PriorityCoefficients
from headway_runtime.scheduling.origin import Call
from headway_runtime.scheduling.programs import programs as module
from headway_runtime.scheduling.programs.priority import FIRST, HORIZON_S, priority
from headway_runtime.scheduling.programs.programs import FIRST_CALL_S, MOST_PROGRAMS, Programs
from headway_runtime.scheduling.urgency import NO_DEADLINE_S

START_S = 1_000.0
A_CALL = 4_000
"""Weighted tokens."""


class Client:
    """Sends calls of one program one after the other."""

    def __init__(self, programs: Programs, program: str = "p", tenant: str = "t") -> None:
        self.programs = programs
        self.program = program
        self.tenant = tenant
        self.sent = 0

    def send(self, at_s: float = START_S, **declared: Any) -> tuple[str, float]:
        """A request's id, and how long after its arrival it is due."""
        self.sent += 1
        request_id = f"{self.tenant}/{self.program}/{self.sent}"
        call = Call(self.program, **declared)
        return request_id, self.programs.arrived(request_id, self.tenant, call, at_s) - at_s

    def run(self, at_s: float = START_S, tokens: int = A_CALL, **declared: Any) -> float:
        request_id, due_in_s = self.send(at_s, **declared)
        self.programs.served(request_id, tokens, at_s)
        self.programs.ended([request_id], at_s + 1)
        return due_in_s


def only(base: int = 0, depth: int = 0, progress: int = 0) -> Programs:
    programs = Programs()
    programs.adopt(PriorityCoefficients(base, depth, progress))
    return programs


def test_work_without_a_program_is_due_like_the_first_call_of_one() -> None:
    programs = Programs()
    alone = programs.arrived("r", "t", None, START_S) - START_S
    assert alone == Client(programs).send()[1]
    assert alone == NO_DEADLINE_S
    assert programs.program_count == 1


def test_programs_that_were_served_more_yield() -> None:
    programs = Programs()
    client = Client(programs)
    due = [client.run() for _ in range(5)]
    assert due == sorted(due)
    assert due[0] < due[-1]
    assert Client(programs, "another").run() == due[0]


def test_a_program_belongs_to_its_tenant() -> None:
    programs = Programs()
    first = Client(programs, tenant="a").run()
    assert Client(programs, tenant="b").run() == first
    assert programs.program_count == 2


def test_a_long_program_does_not_yield_without_an_end() -> None:
    client = Client(Programs())
    due = [client.run() for _ in range(200)]
    assert due[-1] < max(due)


def test_only_service_counts_and_no_waiting() -> None:
    programs = Programs()
    client = Client(programs)
    client.run(START_S, tokens=0)
    assert client.send(START_S + 500)[1] <= client.send(START_S)[1]


def test_threads_side_by_side_count_like_the_longest_one() -> None:
    programs = only(base=100)
    for threads in (1, 8):
        client = Client(programs, f"of {threads}")
        sent = [client.send()[0] for _ in range(threads)]
        for request_id in sent:
            programs.served(request_id, A_CALL)
        programs.ended(sent, START_S)
    due = {Client(programs, f"of {threads}").send()[1] for threads in (1, 8)}
    assert len(due) == 1
    assert due != {Client(programs, "new").send()[1]}


def test_tokens_add_up_over_steps() -> None:
    programs = only(base=100)
    for steps in (1, 4):
        client = Client(programs, f"in {steps}")
        request_id, _ = client.send()
        for _ in range(steps):
            programs.served(request_id, A_CALL / steps)
        programs.ended([request_id], START_S)
    assert Client(programs, "in 1").send()[1] == Client(programs, "in 4").send()[1]


def test_the_fewer_calls_are_declared_to_come_the_earlier() -> None:
    programs = only(depth=100)
    due = [
        Client(programs, str(left)).send(node="a", children=tuple(map(str, range(left))))[1]
        for left in (1, 2, 8, 64)
    ]
    assert due == sorted(set(due))


def test_calls_that_are_done_are_not_to_come() -> None:
    client = Client(only(depth=100))
    steps = ("a", "b", "c", "d")
    due = [
        client.run(node=each, parents=steps[:i], children=steps[i + 1 :])
        for i, each in enumerate(steps)
    ]
    assert due == sorted(set(due), reverse=True)
    # From the middle to the end: half of what priorities are worth.
    assert due[-1] == NO_DEADLINE_S - HORIZON_S / 2


def test_what_the_program_waits_for_goes_before_its_other_calls() -> None:
    client = Client(only(progress=100))
    client.run(node="root", children=("long", "short"))
    due = {
        name: client.send(node=name, parents=("root",), children=children)[1]
        for name, children in {"long": ("last",), "short": ()}.items()
    }
    assert due["long"] < due["short"]


def test_calls_without_a_name_follow_what_is_done() -> None:
    programs = Programs()
    client = Client(programs)
    client.run()
    sent = [client.send()[0] for _ in range(3)]
    assert {programs._running[each].depth for each in sent} == {1}
    programs.ended(sent, START_S)
    assert programs._running[client.send()[0]].depth == 2


def test_what_a_deadline_leaves_after_the_declared_calls_is_when_a_call_is_due() -> None:
    client = Client(Programs())
    _, due = client.send(node="a", children=("b",), deadline_s=100.0)
    assert due == pytest.approx(100 - FIRST_CALL_S)
    # The deadline is of the whole program, from its first call on; nothing is known after this one.
    assert client.send(START_S + 30, node="b")[1] == pytest.approx(70)


def test_calls_take_as_long_as_those_of_the_program_took() -> None:
    programs = Programs()
    client = Client(programs)
    for i in range(200):
        request_id, _ = client.send(START_S + i)
        programs.served(request_id, 1, START_S + i + 50)
        programs.served(request_id, 1, START_S + i + 59)
        programs.ended([request_id], START_S + i + 60)
    _, due = client.send(node="a", children=("b",), deadline_s=1_000.0)
    # Time that they waited for their first token is no service.
    assert due == pytest.approx(1_000 - 10, abs=0.2)
    assert programs.mean_call_s == pytest.approx(10, abs=0.2)
    # Where a program has none yet, those of others tell.
    _, due = Client(programs, "new").send(node="a", children=("b",), deadline_s=1_000.0)
    assert due == pytest.approx(1_000 - 10, abs=0.2)


def test_no_call_is_due_before_it_came() -> None:
    client = Client(Programs())
    client.run(deadline_s=1.0)
    assert client.send(START_S + 100)[1] == 0


@pytest.mark.parametrize("deadline_s", [nan, inf, 0.0, -5.0])
def test_a_deadline_that_is_none_is_passed_over(deadline_s: float) -> None:
    programs = Programs()
    assert Client(programs, "a").send(deadline_s=deadline_s)[1] == Client(programs, "b").send()[1]


def test_a_request_that_comes_again_keeps_what_it_got() -> None:
    programs = Programs()
    call = Call("p")
    first = programs.arrived("r", "t", call, START_S)
    assert programs.arrived("r", "t", call, START_S + 50) == first
    programs.ended(["r"], START_S + 60)
    assert not programs._running


def test_requests_that_are_not_known_are_passed_over() -> None:
    programs = Programs()
    programs.served("nobody", 5)
    programs.ended(["nobody"], START_S)
    assert programs.program_count == 0


def test_an_idle_program_is_forgotten_and_begins_anew() -> None:
    programs = Programs(idle_s=60.0)
    client = Client(programs)
    first = client.run(START_S)
    programs.arrived("r", "t", None, START_S + 30)
    assert programs.program_count == 1
    assert client.run(START_S + 40) > first
    # It ended a second after it came.
    programs.arrived("r", "t", None, START_S + 102)
    assert programs.program_count == 0
    assert client.run(START_S + 102) == first


def test_a_program_with_a_request_under_way_is_not_idle() -> None:
    programs = Programs(idle_s=60.0)
    client = Client(programs)
    done, _ = client.send()
    client.send()
    programs.ended([done], START_S)
    programs.arrived("r", "t", None, START_S + 1_000)
    assert programs.program_count == 1


def test_programs_are_bounded_and_leave_nothing_behind() -> None:
    programs = Programs(most_programs=4)
    for i in range(20):
        Client(programs, str(i)).send()
    assert programs.program_count == 4
    assert len(programs._running) == 4
    # What was forgotten while it ran ends without a trace.
    programs.ended([f"t/{i}/1" for i in range(20)], START_S)
    assert not programs._running


def test_requests_that_are_followed_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_RUNNING", 3)
    programs = Programs()
    client = Client(programs)
    for _ in range(10):
        client.send()
    assert len(programs._running) == 3


def test_a_program_ranks_all_its_calls_by_the_coefficients_it_began_with() -> None:
    programs = only(base=100)
    client = Client(programs)
    client.run()
    programs.adopt(PriorityCoefficients(0, 0, 100))
    assert client.send()[1] > NO_DEADLINE_S
    assert Client(programs, "new").send()[1] == NO_DEADLINE_S


def test_programs_that_are_forgotten_are_what_is_learnt_from() -> None:
    programs = Programs(idle_s=10.0)
    client = Client(programs)
    request_id, _ = client.send(START_S)
    programs.served(request_id, 1, START_S + 3)
    programs.ended([request_id], START_S + 4)
    programs.arrived("r", "t", None, START_S + 100)
    # Four seconds there, one second served.
    assert programs.learning.mean_stretch == pytest.approx(4)


names = st.sampled_from(["", "a", "b", "c", "d"])
lists = st.lists(names, max_size=3).map(tuple)
calls = st.builds(Call, st.sampled_from("xyz"), names, lists, lists, st.none() | st.floats())
requests = st.integers(0, 8)
events = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), requests, st.none() | calls),
        st.tuples(st.just("serve"), requests, st.integers(0, 10**9)),
        st.tuples(st.just("end"), requests, st.none()),
        st.tuples(st.just("wait"), requests, st.none()),
    ),
    max_size=40,
)


@given(events)
@settings(deadline=None)
def test_whatever_is_declared_nothing_waits_for_what_comes_a_horizon_later(happened: Any) -> None:
    programs = Programs(most_programs=2, idle_s=50.0)
    soonest_s = NO_DEADLINE_S - HORIZON_S * (1 - priority(programs.learning.weights, FIRST))
    now_s = START_S
    for what, number, value in happened:
        request_id = f"r{number}"
        if what == "arrive":
            known = request_id in programs._running
            due = programs.arrived(request_id, "t", value, now_s)
            declares = value is not None and programs._shelf.get(("t", value.program))
            has_deadline = declares and declares.deadline_s
            assert known or due >= now_s + (0.0 if has_deadline else soonest_s)
            assert known or has_deadline or due <= now_s + soonest_s + HORIZON_S
        elif what == "serve":
            programs.served(request_id, value, now_s)
        elif what == "end":
            programs.ended([request_id], now_s)
        else:
            now_s += 10 * number
        kept = list(programs._shelf)
        assert programs.program_count == len(kept) <= 2
        assert {name for each in kept for name in each.under_way} == set(programs._running)


def test_of_an_agent_that_names_its_next_call_alone_what_it_has_done_counts_as_well() -> None:
    programs = only(depth=100)
    agent = Client(programs)
    waits = [agent.run(node=str(each), children=(str(each + 1),)) for each in range(4)]
    assert waits == sorted(waits, reverse=True)
    assert waits[0] > waits[3]
    # And the last one has nothing behind it.
    assert agent.run(node="4", children=()) < waits[3]


def test_the_default_bound_is_the_documented_one() -> None:
    assert Programs()._shelf.most == MOST_PROGRAMS == 4_096


def test_of_first_calls_the_shortest_prompt_is_due_first() -> None:
    programs = only(base=100)
    short, long = (
        programs.arrived(f"r{tokens}", "t", Call(f"p{tokens}"), START_S, tokens)
        for tokens in (100, 10_000)
    )
    assert short < long


def test_a_prompt_that_begins_with_what_was_served_counts_once() -> None:
    programs = only(base=100)
    programs.arrived("first", "t", Call("p"), START_S, 1_000)
    programs.served("first", 5_000)
    programs.ended(["first"], START_S + 1)
    again = programs.arrived("second", "t", Call("p"), START_S + 2, 5_000)
    without = programs.arrived("third", "t", Call("p"), START_S + 2)
    assert again == without
