"""Scenarios of classes, tenants and programs: what they send, and that arms differ in them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest

from headway_runtime.bench.arms import parse
from headway_runtime.bench.catalogue import ALL, named
from headway_runtime.bench.classes.completions import completion_figures
from headway_runtime.bench.classes.declarations import Declared, calls
from headway_runtime.bench.classes.program_shapes import (
    ProgramCall,
    Shape,
    chain,
    computed_tokens,
    tree,
)
from headway_runtime.bench.classes.scenarios import (
    CLASS_SCENARIOS,
    HEAVY,
    HONEST,
    LIAR,
    LIGHT,
    base_of,
)
from headway_runtime.bench.classes.sharing import sharing_figures
from headway_runtime.bench.classes.workloads import AGENT, is_long
from headway_runtime.bench.measure import Loaded
from headway_runtime.bench.prompts import prompt_token_ids
from headway_runtime.bench.scenarios import MAX_TRACE_TOKENS, Offer, Scenario
from headway_runtime.bench.simulated import SimulatedGpu, simulate
from headway_runtime.bench.traces import PREFIX_BLOCK_TOKENS
from headway_runtime.bench.workload import Request, Workload, generator
from headway_runtime.policy import WhenUnmet
from headway_runtime.scheduling.origin import Call

CAPACITY = 29_000.0
PROGRAM_BASES = ("programs-chain", "programs-tree", "programs-mixed")


def workload(name: str, duration_s: float = 20.0, seed: int = 1) -> Workload:
    return named([name])[0].workload(Offer(seed, CAPACITY, duration_s))


def without_calls(sent: Workload) -> list[Request]:
    return [replace(each, call=None) for each in sent.requests]


def test_names_are_unique_in_the_whole_catalogue() -> None:
    names = [each.name for each in ALL]
    assert len(set(names)) == len(names)
    assert {each.name for each in CLASS_SCENARIOS} <= set(names)


@pytest.mark.parametrize("scenario", CLASS_SCENARIOS, ids=lambda each: each.name)
def test_a_scenario_is_made_as_both_paths_need_it(scenario: Scenario) -> None:
    sent = scenario.workload(Offer(1, CAPACITY, 10.0))
    assert sent == scenario.workload(Offer(1, CAPACITY, 10.0))
    assert sent != scenario.workload(Offer(2, CAPACITY, 10.0))
    arrivals = [each.arrival_s for each in sent.requests]
    assert arrivals == sorted(arrivals)
    assert {each.class_name for each in sent.requests} <= {each.name for each in sent.classes}
    assert {each.tenant for each in sent.requests} == {each.name for each in sent.tenants} or {""}
    for index, each in enumerate(sent.requests):
        assert all(parent < index for parent in each.after)
        assert all(sent.requests[parent].program == each.program for parent in each.after)
        assert len(each.prefix_blocks) * PREFIX_BLOCK_TOKENS <= each.prompt_tokens
        assert each.prompt_tokens + each.output_tokens <= MAX_TRACE_TOKENS


@pytest.mark.parametrize("name", ["overload-140", "overload-200"])
def test_an_overload_offers_so_much_and_sheds_what_has_a_ttft(name: str) -> None:
    (scenario,) = named([name])
    sent = workload(name, 100)
    assert sent.tokens / 100 == pytest.approx((scenario.load or 0) * CAPACITY, rel=0.1)
    shed = {each.name for each in sent.classes if each.when_unmet is WhenUnmet.SHED}
    assert shed == {"interactive"}


def load_of(sent: Workload, tenant: str) -> float:
    tokens = sum(
        each.prompt_tokens + each.output_tokens for each in sent.requests if each.tenant == tenant
    )
    return tokens / sent.duration_s / CAPACITY


def test_a_heavy_tenant_sends_ten_times_as_much_and_all_send_more_than_their_share() -> None:
    sent = workload("tenants-equal", 60)
    assert {each.weight for each in sent.tenants} == {1}
    heavy, *light = (load_of(sent, each) for each in (HEAVY, *LIGHT))
    assert heavy == pytest.approx(3.5, rel=0.15)
    assert all(each == pytest.approx(0.35, rel=0.2) for each in light)
    assert min(light) > 0.25


def test_tenants_with_weights_all_send_more_than_their_share() -> None:
    sent = workload("tenants-weighted", 60)
    assert [each.weight for each in sent.tenants] == [1, 2, 4]
    assert all(load_of(sent, each.name) > each.weight / 7 for each in sent.tenants)


def test_a_claim_changes_nothing_but_the_label() -> None:
    truth, claim = workload("tenants-truth"), workload("tenants-claim")
    labels = {each.class_name for each in claim.requests if each.tenant == HEAVY}
    assert labels == {"interactive"}
    for told, claimed in zip(truth.requests, claim.requests, strict=True):
        assert replace(claimed, class_name=told.class_name) == told
        assert claimed.tenant == HEAVY or claimed == told
    # Those that it tells the truth to others of are batch too.
    assert {each.class_name for each in truth.requests if each.tenant == HEAVY} > labels


@pytest.mark.parametrize("base", PROGRAM_BASES)
@pytest.mark.parametrize("variant", Declared)
def test_variants_differ_in_what_is_declared_alone(base: str, variant: Declared) -> None:
    true = workload(base)
    other = workload(base if variant is Declared.TRULY else f"{base}-{variant.value}")
    assert without_calls(other) == without_calls(true)
    assert other.tenants == true.tenants
    lied = {a.tenant for a, b in zip(true.requests, other.requests, strict=True) if a != b}
    expected = {
        Declared.TRULY: set(),
        Declared.UNDECLARED: {HONEST, LIAR},
        Declared.WRONGLY: {LIAR},
        Declared.MALICIOUSLY: {LIAR},
    }
    assert lied == expected[variant]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("programs-chain", ("programs-chain", Declared.TRULY)),
        ("programs-tree-wrong", ("programs-tree", Declared.WRONGLY)),
        ("tenants-claim", ("tenants-claim", Declared.TRULY)),
    ],
)
def test_a_scenario_tells_its_base_and_variant(name: str, expected: tuple[str, Declared]) -> None:
    assert base_of(name) == expected


@pytest.mark.parametrize("base", PROGRAM_BASES)
def test_true_declarations_are_who_waits_for_whom(base: str) -> None:
    sent = workload(base).requests
    names: dict[tuple[str, str], int] = {}
    for index, each in enumerate(sent):
        if each.call is not None:
            assert each.call.program == each.program
            names[each.program, each.call.node] = index
    for index, each in enumerate(sent):
        if each.call is None:
            assert not each.program
            continue
        parents = {names[each.program, name] for name in each.call.parents}
        assert parents == set(each.after)
        children = {names[each.program, name] for name in each.call.children}
        assert children == {n for n, other in enumerate(sent) if index in other.after}


def test_chat_beside_programs_has_a_ttft_and_programs_promise_nothing() -> None:
    sent = workload("programs-mixed")
    assert AGENT in sent.classes
    chat = [each for each in sent.requests if not each.program]
    assert {each.class_name for each in chat} == {"interactive"}
    assert len(chat) > 50
    assert {each.class_name for each in sent.requests if each.program} == {"agent"}


def drawn(shape: Shape, count: int = 400) -> list[list[ProgramCall]]:
    rng = generator("test")
    return [shape(rng, is_long=is_long(number)) for number in range(count)]


def test_a_chain_is_one_call_after_the_other_each_with_all_before_it() -> None:
    for program in drawn(chain):
        assert [each.after for each in program] == [(), *((n,) for n in range(len(program) - 1))]
        for before, each in pairwise(program):
            is_summary = each.context > before.context
            assert is_summary or each.prompt_tokens > before.prompt_tokens + before.output_tokens


def test_a_tree_fans_out_and_in() -> None:
    for program in drawn(tree):
        fans = [each for each in program if len(each.after) > 1]
        assert fans
        assert fans[-1] is program[-1]
        for fan in fans:
            roots = {program[each].after for each in fan.after}
            assert len(roots) == 1


@pytest.mark.parametrize("shape", [chain, tree])
def test_few_programs_need_more_than_half_of_all_work(shape: Shape) -> None:
    work = [computed_tokens(each) for each in drawn(shape, 4000)]
    long = [each for number, each in enumerate(work) if is_long(number)]
    assert len(long) == 4000 // 32
    assert 0.5 < sum(long) / sum(work) < 0.7


def test_what_calls_share_is_the_same_in_their_prompts() -> None:
    by_program: dict[str, list[Request]] = defaultdict(list)
    for each in workload("programs-chain", 5).requests:
        by_program[each.program].append(each)
    program = max(by_program.values(), key=len)
    first, second = next(
        (a, b) for a, b in pairwise(program) if {*a.prefix_blocks} & {*b.prefix_blocks}
    )
    shared = PREFIX_BLOCK_TOKENS * len(first.prefix_blocks)
    assert shared
    assert prompt_token_ids(first)[:shared] == prompt_token_ids(second)[:shared]
    blocks = [{*each.prefix_blocks} for program in by_program.values() for each in program[:1]]
    assert sum(map(len, blocks)) == len(set().union(*blocks))


def test_only_wrong_declarations_have_circles_and_only_malicious_ones_hide() -> None:
    rng = generator("test")
    (program,) = drawn(chain, 1)
    program = [*program, *program, *program]
    wrong = [calls("p", program, Declared.WRONGLY, rng) for _ in range(20)]
    assert any(call.parents and int(call.parents[0]) >= int(call.node) for w in wrong for call in w)
    malicious = [call for _ in range(20) for call in calls("p", program, Declared.MALICIOUSLY, rng)]
    assert not any(call.children for call in malicious)
    assert len({call.program for call in malicious}) > 1
    assert {call.deadline_s for call in malicious} == {1.0}
    assert calls("p", program, Declared.UNDECLARED, rng) == [Call("p")] * len(program)


def loaded(name: str, arm: str, duration_s: float, drain_s: float) -> tuple[Workload, Loaded]:
    sent = workload(name, duration_s)
    return sent, simulate(SimulatedGpu(), parse(arm), sent, 1, duration_s + drain_s)


def test_order_of_arrival_is_unfair_to_light_tenants_and_counters_are_not() -> None:
    found = {}
    for arm in ("stock-512-fcfs", "vtc"):
        sent, run = loaded("tenants-equal", arm, 20, 5)
        found[arm] = sharing_figures(run.outcomes, sent.tenants, sent.classes)
    assert found["stock-512-fcfs"]["jain_index"] < 0.6
    assert found["vtc"]["jain_index"] > 0.95
    assert found["vtc"]["beyond_bound"] == 0
    assert found["stock-512-fcfs"]["longest_lag_tokens"] > found["vtc"]["longest_lag_tokens"]


def test_order_of_arrival_makes_short_programs_wait_for_long_ones() -> None:
    p50_s = {}
    for arm in ("stock-512-fcfs", "spf"):
        _, run = loaded("programs-tree", arm, 30, 120)
        figures = completion_figures(run.outcomes)
        assert figures["unfinished"] == 0
        p50_s[arm] = figures["completion_s"]["p50"]
    assert p50_s["spf"] < 0.7 * p50_s["stock-512-fcfs"]
