"""Other people's orders of admission, by themselves and in an engine."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway_runtime.bench.arms import RULES, parse, rules
from headway_runtime.bench.outcome import Ending, Outcome
from headway_runtime.bench.rivals.admission_rule import LOOKAHEAD, AdmissionRule, Newcomer
from headway_runtime.bench.rivals.attained_service import (
    BOUNDS_S,
    STARVED,
    LeastAttainedService,
)
from headway_runtime.bench.rivals.choice import rule_of
from headway_runtime.bench.rivals.shortest_prompt import ShortestPromptFirst
from headway_runtime.bench.rivals.token_counters import VirtualTokenCounters
from headway_runtime.bench.rule_in_vllm import RuleInVllm
from headway_runtime.bench.simulated import SimulatedGpu, simulate
from headway_runtime.bench.workload import Request, Workload
from headway_runtime.policy import Tenant, TrafficClass
from headway_runtime.scheduling.origin import Call, Origin

BATCH = TrafficClass("batch")


def newcomer(
    name: str, tenant: str = "", program: str = "", prompt_tokens: int = 100, arrival_s: float = 0.0
) -> Newcomer:
    call = Call(program) if program else None
    return Newcomer(name, Origin(tenant, call), prompt_tokens, arrival_s)


def arrive(rule: AdmissionRule, *newcomers: Newcomer) -> None:
    for each in newcomers:
        rule.arrived(each)


@pytest.mark.parametrize("arm", RULES)
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_every_rule_names_exactly_those_that_wait(arm: str, seed: int) -> None:
    random = Random(seed)  # noqa: S311 - no secret
    rule = rule_of(parse(arm), {"a": 2})
    assert rule is not None
    waiting: set[str] = set()
    running: set[str] = set()
    for number in range(60):
        now_s = float(number)
        deed = random.random()
        if deed < 0.5:
            name = f"r{number}"
            tenant, program = random.choice("abc"), random.choice(("", "p", "q"))
            rule.arrived(newcomer(name, tenant, program, random.randint(1, 2000), now_s))
            waiting.add(name)
        elif deed < 0.8:
            admitted = rule.first(now_s)[:2]
            rule.stepped([(each, 64) for each in (*admitted, *running)], now_s)
            waiting -= set(admitted)
            running |= set(admitted)
        elif running or waiting:
            ended = random.choice(sorted(running | waiting))
            rule.ended(ended)
            running.discard(ended)
            waiting.discard(ended)
        first = rule.first(now_s)
        assert len(first) == len(set(first)) == min(LOOKAHEAD, len(waiting))
        assert set(first) <= waiting
        assert {each for each in waiting | running if rule.waits(each)} == waiting


def test_shortest_prompts_go_first() -> None:
    rule = ShortestPromptFirst()
    arrive(rule, newcomer("l", prompt_tokens=900), newcomer("s", prompt_tokens=9))
    arrive(rule, newcomer("t", prompt_tokens=9, arrival_s=1.0))
    assert rule.first(2.0) == ["s", "t", "l"]


def test_counters_charge_prompts_once_and_output_tokens_double() -> None:
    rule = VirtualTokenCounters({})
    arrive(rule, newcomer("a1", "a", prompt_tokens=100), newcomer("b1", "b", prompt_tokens=130))
    rule.stepped([("a1", 60), ("b1", 130)], 1.0)
    assert (rule._counters["a"], rule._counters["b"]) == (100, 130)
    rule.stepped([("a1", 40), ("b1", 1)], 2.0)
    rule.stepped([("a1", 1), ("b1", 1)], 3.0)
    assert (rule._counters["a"], rule._counters["b"]) == (102, 134)
    # Computed again after it lost its KV blocks.
    rule.stepped([("b1", 132)], 4.0)
    assert rule._counters["b"] == 134


def test_the_tenant_that_was_served_least_is_next_with_its_earliest_request() -> None:
    rule = VirtualTokenCounters({})
    arrive(rule, *(newcomer(f"a{n}", "a") for n in range(3)))
    arrive(rule, *(newcomer(f"b{n}", "b") for n in range(3)))
    assert rule.first(0.0) == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_weights_divide_what_is_charged() -> None:
    rule = VirtualTokenCounters({"b": 2})
    arrive(rule, *(newcomer(f"a{n}", "a") for n in range(3)))
    arrive(rule, *(newcomer(f"b{n}", "b") for n in range(6)))
    first = rule.first(0.0)
    assert [each[0] for each in first[:6]].count("b") == 4


def test_who_comes_back_has_saved_nothing_up() -> None:
    rule = VirtualTokenCounters({})
    arrive(rule, newcomer("a1", "a", prompt_tokens=1000), newcomer("a2", "a"))
    rule.stepped([("a1", 1000)], 1.0)
    arrive(rule, newcomer("b1", "b"))
    assert rule._counters["b"] == rule._counters["a"] == 1000
    rule.stepped([("a2", 100), ("b1", 100)], 2.0)
    # Nobody waits: it is lifted to the one whose request left the queue last.
    arrive(rule, newcomer("c1", "c"))
    assert rule._counters["c"] == rule._counters["b"]


def test_programs_that_were_served_less_go_first() -> None:
    rule = LeastAttainedService()
    arrive(rule, newcomer("p1", program="p"))
    rule.stepped([("p1", 1)], 0.0)
    for now_s in range(1, int(BOUNDS_S[0]) + 2):
        rule.stepped([("p1", 1)], float(now_s))
    rule.ended("p1")
    at = BOUNDS_S[0] + 2
    arrive(
        rule,
        newcomer("p2", program="p", arrival_s=at),
        newcomer("q1", program="q", arrival_s=at + 1),
    )
    assert rule.first(at + 1) == ["q1", "p2"]
    # Another tenant's program of that name is another one.
    arrive(rule, newcomer("x", "other", "p", arrival_s=at + 2))
    assert rule.first(at + 2) == ["q1", "x", "p2"]


def test_a_call_that_has_waited_long_enough_goes_first() -> None:
    rule = LeastAttainedService()
    arrive(rule, newcomer("p1", program="p"))
    for now_s in range(int(BOUNDS_S[0]) + 2):
        rule.stepped([("p1", 1)], float(now_s))
    rule.ended("p1")
    arrive(
        rule,
        newcomer("p2", program="p", arrival_s=10.0),
        newcomer("q1", program="q", arrival_s=11.0),
    )
    assert rule.first(12.0) == ["q1", "p2"]
    assert rule.first(10.0 + STARVED * (BOUNDS_S[0] + 2)) == ["p2", "q1"]


@pytest.mark.parametrize(("by_longest_chain", "served_s"), [(False, 6.0), (True, 3.0)])
def test_side_by_side_calls_count_as_sum_or_as_longest(
    by_longest_chain: bool, served_s: float
) -> None:
    rule = LeastAttainedService(by_longest_chain=by_longest_chain)
    arrive(rule, newcomer("a", program="p"), newcomer("b", program="p"))
    for now_s in range(4):
        rule.stepped([("a", 1), ("b", 1)], float(now_s))
    rule.ended("a")
    rule.ended("b")
    assert rule._programs["", "p"].served_s == served_s


def test_a_call_without_a_program_is_one_of_its_own() -> None:
    rule = LeastAttainedService()
    arrive(rule, newcomer("a"), newcomer("b", arrival_s=1.0))
    for now_s in range(2 * int(BOUNDS_S[-1])):
        rule.stepped([("a", 1)], float(now_s))
    rule.ended("a")
    arrive(rule, newcomer("c", arrival_s=0.5))
    assert rule.first(200.0) == ["c", "b"]


def two_tenants(seed: int) -> Workload:
    random = Random(seed)  # noqa: S311 - no secret
    requests = [
        Request(0.001 * n, "batch", random.randint(100, 900), 20, n, tenant=tenant)
        for n, tenant in enumerate(["heavy"] * 150 + ["light"] * 30)
    ]
    return Workload((BATCH,), tuple(requests), 1.0, (Tenant("heavy"), Tenant("light")))


def last_s(outcomes: list[Outcome], tenant: str) -> float:
    assert all(each.ending is Ending.COMPLETE for each in outcomes)
    return max(each.ended_s for each in outcomes if each.tenant == tenant)


def test_counters_keep_a_light_tenant_from_waiting_for_a_heavy_one() -> None:
    ended = {
        arm: simulate(SimulatedGpu(), parse(arm), two_tenants(1), 1, 120.0).outcomes
        for arm in ("vtc", "stock-512-fcfs")
    }
    assert last_s(ended["vtc"], "light") < 0.6 * last_s(ended["stock-512-fcfs"], "light")
    # All work together takes as long.
    assert last_s(ended["vtc"], "heavy") < 1.1 * last_s(ended["stock-512-fcfs"], "light")


@pytest.mark.parametrize("arm", [each.name for each in rules()])
def test_all_work_gets_done_also_where_kv_blocks_run_out(arm: str) -> None:
    workload = two_tenants(2)
    long = tuple(replace(each, output_tokens=200) for each in workload.requests)
    gpu = SimulatedGpu(kv_blocks=600)
    loaded = simulate(gpu, parse(arm), replace(workload, requests=long), 1, 600.0)
    assert all(each.ending is Ending.COMPLETE for each in loaded.outcomes)


class Queue(deque[Any]):
    """vLLM's queue in order of arrival."""

    def remove_request(self, request: Any) -> None:
        self.remove(request)

    def prepend_request(self, request: Any) -> None:
        self.appendleft(request)


def test_in_vllm_what_was_preempted_stays_in_front() -> None:
    prompts = {"p": 500, "l": 400, "s": 10, "m": 100, "skipped": 5}
    requests = {
        name: SimpleNamespace(request_id=name, num_prompt_tokens=tokens, arrival_time=0.0)
        for name, tokens in prompts.items()
    }
    rule = RuleInVllm(ShortestPromptFirst(), lambda _: Origin())
    for each in requests.values():
        rule.arrived(each)
    rule.stepped({"p": 500}, 1.0)
    waiting = Queue([requests["p"], requests["l"], requests["s"], requests["m"]])
    rule.arrange(waiting, requests, 1.0)
    assert [each.request_id for each in waiting] == ["p", "s", "m", "l"]
    rule.ended(["s", "skipped"])
    waiting.remove(requests["s"])
    rule.arrange(waiting, requests, 2.0)
    assert [each.request_id for each in waiting] == ["p", "m", "l"]


def test_in_vllm_tenants_are_those_of_requests() -> None:
    names: dict[str, str] = defaultdict(lambda: "b", a1="a", a2="a")
    rule = RuleInVllm(VirtualTokenCounters({}), lambda each: Origin(names[each.request_id]))
    requests = {
        name: SimpleNamespace(request_id=name, num_prompt_tokens=100, arrival_time=0.0)
        for name in ("a1", "a2", "b1")
    }
    for each in requests.values():
        rule.arrived(each)
    waiting = Queue(requests.values())
    rule.arrange(waiting, requests, 1.0)
    assert [each.request_id for each in waiting] == ["a1", "b1", "a2"]
