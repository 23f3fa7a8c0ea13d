"""How much of whose prompt a step computes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from headway_runtime.scheduling.decode_only import (
    STEPS_WITHOUT_BACKGROUND,
    STEPS_WITHOUT_URGENT,
)
from headway_runtime.scheduling.plan import StepPlan
from headway_runtime.scheduling.planner import plan_step
from headway_runtime.scheduling.reason import Reason
from headway_runtime.scheduling.step_size import LEAST_FLOOR_TOKENS, MOST_FLOOR_TOKENS
from headway_runtime.scheduling.timing.step_shape import StepShape, attention_pairs
from headway_runtime.scheduling.timing.step_time_model import StepTimeModel
from headway_runtime.scheduling.view import (
    Carried,
    Limits,
    Prefill,
    TokenDue,
    WaitingRequest,
    Work,
)
from tests.unit.planned import BATCH, CEILINGS, CHAT, MODEL, NOW, batch, chat, due, view, work


def plan(in_hand: Work, waiting: Any = (), **fields: Any) -> StepPlan:
    return plan_step(view(in_hand, waiting, **fields), lambda: False)


def running(request: WaitingRequest, computed: int = 0) -> Prefill:
    return Prefill(
        request.request_id, computed, request.prefill_tokens, request.arrival_s,
        request.traffic_class,
    )  # fmt: skip


names = st.integers(0, 10**6).map(str)
some_prefills = st.lists(
    st.builds(
        Prefill,
        names,
        st.integers(0, 30_000),
        st.integers(1, 30_000),
        st.floats(NOW - 20, NOW),
        st.sampled_from((CHAT, BATCH, None)),
        st.booleans(),
    ),
    max_size=8,
    unique_by=lambda each: each.request_id,
)
some_waiting = st.lists(
    st.builds(
        WaitingRequest,
        names.map(lambda name: f"w{name}"),
        st.floats(NOW - 20, NOW),
        st.sampled_from((CHAT, BATCH, None)),
        prefill_tokens=st.integers(1, 30_000),
        is_late=st.booleans(),
    ),
    max_size=30,
    unique_by=lambda each: each.request_id,
)
some_work = st.builds(
    Work,
    now_s=st.just(NOW),
    free_s=st.floats(NOW, NOW + 0.2),
    step_time=st.just(MODEL),
    decodes=st.integers(0, 200),
    decode_context=st.integers(0, 10**6),
    due=st.lists(
        st.builds(TokenDue, st.floats(NOW - 0.6, NOW + 1), st.sampled_from((0.015, 0.03, 0.1))),
        max_size=3,
    ).map(tuple),
    prefills=some_prefills.map(tuple),
    graph_tokens=st.sampled_from((0, 512)),
    graph_launch_s=st.sampled_from((0.0, 0.02)),
    eager_launch_s=st.sampled_from((0.0, 0.03)),
    carried=st.builds(
        Carried, st.floats(0, 20_000), st.integers(0, 20), decode_only_steps=st.integers(0, 20)
    ),
)


@given(some_work, some_waiting)
def test_limits_hold_and_every_decode_gets_its_token(in_hand: Work, waiting: Any) -> None:
    found = plan(in_hand, waiting)
    assert 1 <= found.limits.token_budget <= CEILINGS.token_budget
    assert found.limits.token_budget >= in_hand.decodes
    remaining = {each.request_id: each.remaining_tokens for each in in_hand.prefills}
    assert found.chunks.keys() == remaining.keys()
    assert all(0 <= chunk <= remaining[name] for name, chunk in found.chunks.items())
    assert in_hand.decodes + sum(found.chunks.values()) <= found.limits.token_budget


@given(some_work, some_waiting)
def test_no_step_is_longer_than_it_may_unless_a_floor_says_so(in_hand: Work, waiting: Any) -> None:
    found = plan(in_hand, waiting)
    lowered = Reason.TOKENS_DUE in found.reasons
    floors = {Reason.PREFILL_FLOOR, Reason.DECODE_ONLY, Reason.FILLS_LAUNCH}
    exempt = floors & set(found.reasons)
    if not in_hand.due or not lowered or exempt:
        return
    # As if all of it came first in a prompt; attention to what came before only adds to that.
    tokens = found.limits.token_budget - in_hand.decodes
    shape = StepShape(
        tokens, in_hand.decodes, in_hand.decode_context, _pairs_at_least(in_hand, found, tokens)
    )
    target_s = min(each.due_s for each in in_hand.due) - in_hand.free_s
    assert MODEL.seconds(shape) <= max(target_s, 0.0) + 1e-9 or tokens == 0


def _pairs_at_least(in_hand: Work, found: StepPlan, tokens: int) -> float:
    computed = {each.request_id: each.computed_tokens for each in in_hand.prefills}
    pairs = sum(attention_pairs(computed[name], chunk) for name, chunk in found.chunks.items())
    return pairs if sum(found.chunks.values()) <= tokens else 0.0


@given(some_work, some_waiting)
def test_without_tokens_due_nothing_is_held_back_for_time(in_hand: Work, waiting: Any) -> None:
    in_hand = replace(in_hand, due=())
    found = plan(in_hand, waiting)
    demand = sum(each.remaining_tokens for each in in_hand.prefills)
    demand += sum(each.prefill_tokens for each in waiting)
    assert found.limits.token_budget >= min(CEILINGS.token_budget, in_hand.decodes + demand)


def test_with_time_enough_for_all_the_budget_is_the_engines_own() -> None:
    found = plan(work(decodes=10, due=due(0.3)), [chat("a", 500)])
    assert found.limits == CEILINGS
    assert not found.reasons


def test_where_all_fit_the_budget_is_what_the_time_allows_all_the_same() -> None:
    found = plan(work(decodes=10, due=due(0.025)), [chat("a", 62)])
    # A step without a plan may take what the plans before it allowed.
    assert found.prompt_tokens is not None
    assert 700 < found.prompt_tokens < 1000
    assert not found.reasons


def test_a_token_that_is_due_bounds_the_prefill() -> None:
    found = plan(work(decodes=64, decode_context=30_000, due=due(0.025)), [chat("a", 5000)])
    # 25 ms less 3.2 + 2.3 + 1.2 ms for the step itself, at 21.6 us a token and a little attention.
    assert 800 < found.limits.token_budget - 64 < 850
    assert Reason.TOKENS_DUE in found.reasons


URGENT = running(chat("a", 5000, NOW - 0.9))
"""What is left of its TTFT is less than twice the time that its prompt takes."""


def test_a_prompt_with_little_time_left_gets_its_floor_whatever_is_due() -> None:
    found = plan(work(decodes=64, due=due(0.0), prefills=(URGENT,)))
    # 3.2 and 2.3 ms for the step and its decodes, at 21.6 us a token.
    assert found.limits.token_budget == 64 + 253
    assert Reason.PREFILL_FLOOR in found.reasons
    larger = plan(work(decodes=200, due=due(0.0), prefills=(URGENT,)))
    assert larger.limits.token_budget == 200 + MOST_FLOOR_TOKENS


def test_the_floor_is_small_where_prefill_is_slow() -> None:
    slow = StepTimeModel(mixed_prior_ms=(20.0, 1500.0, 300.0, 20.0, 100.0))
    found = plan(work(decodes=4, due=due(0.0), step_time=slow, prefills=(URGENT,)))
    assert found.limits.token_budget == 4 + LEAST_FLOOR_TOKENS + 9


def test_a_prompt_with_time_left_waits_for_tokens_that_are_due_but_not_for_ever() -> None:
    in_hand = work(decodes=64, due=due(0.0))
    for step in range(STEPS_WITHOUT_URGENT):
        found = plan(in_hand, [chat("a", 5000)])
        assert found.limits.token_budget == 64
        assert Reason.DECODE_ONLY in found.reasons
        assert found.carried is not None
        assert found.carried.decode_only_steps == step + 1
        in_hand = replace(in_hand, carried=found.carried)
    found = plan(in_hand, [chat("a", 5000)])
    assert found.limits.token_budget == 64 + 253
    assert found.carried is not None
    assert found.carried.decode_only_steps == 0


def test_a_step_whose_launch_takes_too_long_only_decodes() -> None:
    in_hand = work(decodes=64, due=due(0.012), graph_tokens=512, graph_launch_s=0.03)
    found = plan(in_hand, [chat("a", 300)])
    assert found.limits.token_budget == 64
    assert Reason.DECODE_ONLY in found.reasons
    # Launched in time, the same step takes what fits.
    assert plan(replace(in_hand, graph_launch_s=0.02), [chat("a", 300)]).limits.token_budget > 200


def test_what_is_computed_while_a_step_is_launched_costs_nothing() -> None:
    in_hand = work(
        decodes=64, due=due(0.0), graph_tokens=512, graph_launch_s=0.0235, prefills=(URGENT,)
    )
    found = plan(in_hand)
    # 23.5 ms less the 10 ms in which the engine is not free, 5.5 ms of the step itself.
    assert found.limits.token_budget == pytest.approx(64 + 8 / 0.0216, abs=5)
    assert Reason.FILLS_LAUNCH in found.reasons
    assert plan(replace(in_hand, graph_launch_s=0.2)).limits.token_budget == 512


LAUNCHES_SLOWLY: dict[str, Any] = {
    "decodes": 128,
    "decode_context": 25_600,
    "due": (TokenDue(NOW + 0.2, 0.03),),
    "graph_tokens": 512,
    "decode_launch_s": 0.003,
    "graph_launch_s": 0.014,
    "eager_launch_s": 0.04,
}
"""Decodes take 8 ms, and so do 230 prompt tokens beside them that are launched in 14."""


def test_prompts_wait_for_others_to_share_a_launch_that_takes_longer_than_they_do() -> None:
    in_hand = work(**LAUNCHES_SLOWLY, arrivals_per_s=80.0)
    found = plan(in_hand, [chat("a", 100)])
    assert Reason.GATHERS_PROMPTS in found.reasons
    assert found.limits.token_budget == in_hand.decodes
    assert not found.admits
    # As many as make the step no longer than its launch go at once.
    enough = [chat(name, 100) for name in "abc"]
    assert Reason.GATHERS_PROMPTS not in plan(in_hand, enough).reasons


def test_they_do_not_where_few_others_come_or_few_decode() -> None:
    for few in ({"arrivals_per_s": 1.0}, {"arrivals_per_s": 80.0, "decodes": 1}):
        found = plan(work(**{**LAUNCHES_SLOWLY, **few}), [chat("a", 100)])
        assert Reason.GATHERS_PROMPTS not in found.reasons
        assert found.admits


def test_nor_for_longer_than_a_few_steps() -> None:
    in_hand = work(**LAUNCHES_SLOWLY, arrivals_per_s=80.0)
    tired = replace(in_hand, carried=Carried(decode_only_steps=STEPS_WITHOUT_URGENT))
    assert plan(tired, [chat("a", 100)]).admits


def test_where_launches_are_short_prompts_wait_for_nobody() -> None:
    fast = {"decode_launch_s": 0.001, "graph_launch_s": 0.004, "eager_launch_s": 0.006}
    found = plan(work(**{**LAUNCHES_SLOWLY, **fast}, arrivals_per_s=80.0), [chat("a", 100)])
    assert found.admits


JUST_BEGUN: dict[str, Any] = {
    **LAUNCHES_SLOWLY,
    "free_s": NOW,
    "decode_context": 130_000,
    "due": (TokenDue(NOW + 0.035, 0.03),),
    "tightest_ttft_s": 1.0,
}
"""Somebody has time for a graph, and not for a launch of 40 ms."""


def test_a_token_for_everybody_makes_time_for_a_step_larger_than_the_largest_graph() -> None:
    in_hand = work(**JUST_BEGUN)
    found = plan(in_hand, [chat("a", 3000)])
    assert Reason.DECODES_FIRST in found.reasons
    assert found.limits.token_budget == in_hand.decodes
    # The step after it.
    assert found.carried is not None
    (first,) = in_hand.due
    took_s = MODEL.seconds(StepShape(decodes=128, decode_context=130_000))
    now_s = NOW + took_s
    later = replace(
        in_hand, now_s=now_s, free_s=now_s, due=(TokenDue(first.due_s + 0.03, 0.03),),
        carried=found.carried,
    )  # fmt: skip
    assert plan(later, [chat("a", 3000)]).limits.token_budget > 1000


def test_it_does_not_where_prompts_get_on_no_faster_by_that() -> None:
    def decodes_first(tokens: int = 3000, **fields: Any) -> bool:
        found = plan(work(**{**JUST_BEGUN, **fields}), [chat("a", tokens)])
        return Reason.DECODES_FIRST in found.reasons

    assert decodes_first()
    assert not decodes_first(tokens=400)
    assert not decodes_first(eager_launch_s=0.07)
    assert not decodes_first(due=(TokenDue(NOW + 0.022, 0.015),))
    # Once in a row: the step after it takes what there is.
    assert not decodes_first(carried=Carried(decode_only_steps=1))
    # What limits the next step as well.
    assert not decodes_first(program_decodes=1)
    narrow = replace(view(work(**JUST_BEGUN), [chat("a", 3000)]), wanted=Limits(540, 256))
    assert Reason.DECODES_FIRST not in plan_step(narrow, lambda: False).reasons
    # A little context is little to save.
    assert not decodes_first(decodes=10, decode_context=5_000)


def test_it_does_not_where_nobody_who_waits_may_start() -> None:
    # Blocks are short, and more background work waits than a step looks at.
    in_hand = work(**{**JUST_BEGUN, "kv_usage": 0.95})
    found = plan(in_hand, [batch(f"b{number}") for number in range(100)])
    assert Reason.DECODES_FIRST not in found.reasons
    assert not found.admits


@given(
    decodes=st.sampled_from((0, 1, 30, 128, 600)),
    prompts=st.lists(st.integers(1, 120), min_size=1, max_size=4),
    arrivals_per_s=st.floats(20, 1000),
    steps=st.integers(0, 6),
    running_tokens=st.integers(0, 100),
)
def test_prompts_are_gathered_beside_decodes_only_and_get_nothing_then(
    decodes: int, prompts: list[int], arrivals_per_s: float, steps: int, running_tokens: int
) -> None:
    prefills = (Prefill("r", 10, running_tokens, NOW, CHAT),) if running_tokens else ()
    in_hand = work(**{
        **LAUNCHES_SLOWLY,
        "decodes": decodes,
        "arrivals_per_s": arrivals_per_s,
        "carried": Carried(decode_only_steps=steps),
        "prefills": prefills,
    })  # fmt: skip
    found = plan(in_hand, [chat(f"w{n}", tokens) for n, tokens in enumerate(prompts)])
    gathers = Reason.GATHERS_PROMPTS in found.reasons
    if not decodes or steps >= STEPS_WITHOUT_URGENT:
        assert not gathers
    if gathers:
        assert not found.admits
        assert not any(found.chunks.values())
        assert found.limits.token_budget == decodes
    event(f"gathers: {gathers}")


def test_where_decodes_are_launched_no_faster_prompts_share_no_launch() -> None:
    without_graphs = {**LAUNCHES_SLOWLY, "graph_tokens": 0, "arrivals_per_s": 80.0}
    larger_than_graphs = {**without_graphs, "graph_tokens": 64}
    for each in (without_graphs, larger_than_graphs):
        assert plan(work(**each), [chat("a", 100)]).admits


def test_where_nobody_was_promised_anything_prompts_do_not_wait() -> None:
    unhurried = {**LAUNCHES_SLOWLY, "due": (), "arrivals_per_s": 80.0}
    assert plan(work(**unhurried), [batch("a", 100)]).admits


def test_background_work_waits_for_time_but_not_for_ever() -> None:
    in_hand = work(decodes=64, due=due(0.0))
    for step in range(STEPS_WITHOUT_BACKGROUND):
        found = plan(in_hand, [batch("a", 5000)])
        assert found.limits.token_budget == 64
        assert Reason.DECODE_ONLY in found.reasons
        assert found.carried.steps_without_background == step + 1
        in_hand = replace(in_hand, carried=found.carried)
    found = plan(in_hand, [batch("a", 5000)])
    assert found.limits.token_budget == 64 + 253
    assert found.carried.steps_without_background == 0


def test_an_urgent_prompt_that_waits_goes_before_a_running_one_that_can() -> None:
    in_hand = work(decodes=10, due=due(0.02), prefills=(running(batch("b", 30_000)),))
    found = plan(in_hand, [chat("a", 400)])
    prefill = found.limits.token_budget - 10
    assert found.chunks["b"] == prefill - 400
    assert Reason.URGENT_PREFILL_FIRST in found.reasons
    much = plan(in_hand, [chat("a", 4000)])
    assert much.chunks == {"b": 0}


def test_background_work_gets_its_share_of_prompt_tokens_under_any_load() -> None:
    urgent = [chat(f"a{n}", 4000) for n in range(8)]
    prefill = running(batch("b", 10**6))
    carried, of_background, of_all = Carried(), 0, 0
    for _ in range(2000):
        in_hand = work(decodes=64, due=due(0.02), prefills=(prefill,), carried=carried)
        found = plan(in_hand, urgent)
        carried = found.carried
        of_background += found.chunks["b"]
        of_all += found.limits.token_budget - 64
    assert of_background / of_all == pytest.approx(0.05, abs=0.005)


def test_a_background_request_far_behind_gets_its_share_too() -> None:
    urgent = [chat(f"a{n:03}", 100) for n in range(200)]
    far = batch("b", 300)
    settled = [*urgent, far]
    found = plan_step(
        replace(
            view(work(decodes=64, due=due(0.02), carried=Carried(2000.0))),
            settled=[(0, NOW + 1)] * 200 + [(1, NOW + 60)],
            front=settled,
        ),
        lambda: False,
    )
    assert found.first == "b"
    assert Reason.BACKGROUND_SHARE in found.reasons


def test_a_budget_a_little_over_the_largest_graph_is_cut_to_it() -> None:
    in_hand = work(
        decodes=64, due=due(0.025), graph_tokens=512, eager_launch_s=0.03, decode_context=30_000
    )
    found = plan(in_hand, [chat("a", 5000)])
    assert found.limits.token_budget == 512
    assert Reason.GRAPH_SIZE in found.reasons
    patient = plan(replace(in_hand, due=due(0.2)), [chat("a", 50_000)])
    assert patient.limits.token_budget > 512


def test_the_policys_budget_is_never_exceeded() -> None:
    seen = replace(view(work(decodes=10)), wanted=Limits(300, 256), unsettled=(chat("a", 5000),))
    found = plan_step(seen, lambda: False)
    assert found.limits.token_budget == 300


def test_a_prompt_a_little_larger_than_a_graph_takes_two_steps_where_launches_are_slow() -> None:
    in_hand = work(decodes=64, due=due(0.2), graph_tokens=512, eager_launch_s=0.04)
    found = plan(in_hand, [chat("a", 600)])
    assert found.limits.token_budget == 512
    assert Reason.GRAPH_SIZE in found.reasons
    # A large one is worth its launch, and with quick launches any is; so is one nobody waits for.
    assert plan(in_hand, [chat("a", 4000)]).limits.token_budget > 4000
    quick = replace(in_hand, eager_launch_s=0.001)
    assert plan(quick, [chat("a", 600)]).limits.token_budget > 600
    assert plan(replace(in_hand, due=()), [chat("a", 600)]).limits == CEILINGS


def test_a_plan_without_prompts_to_compute_says_nothing_of_how_much_a_step_may_take() -> None:
    # The batch is full, and another waits.
    full = replace(
        view(work(decodes=64, due=due(0.02)), [chat("a", 3000)]), running=CEILINGS.max_batch_size
    )
    assert plan_step(full, lambda: False).prompt_tokens is None
