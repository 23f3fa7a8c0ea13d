"""Planners after other people's work, and what holds for every planner of the benchmark."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway_runtime.bench.arms import ablations, parse, rivals
from headway_runtime.bench.rivals.choice import rival_of
from headway_runtime.bench.rivals.dealing import LEAST_STEP_TOKENS
from headway_runtime.bench.rivals.niyama import MOST_STEP_TOKENS, RELEGATED_A_STEP
from headway_runtime.executors.simulated.engine import SimulatedEngine
from headway_runtime.executors.simulated.kv_blocks import KvBlocks
from headway_runtime.executors.simulated.request import Arrival
from headway_runtime.executors.simulated.step_time import GpuStepTime
from headway_runtime.policy import Policy, Scope, Stamp
from headway_runtime.scheduling.plan import StepPlan
from headway_runtime.scheduling.planner import PlanOverdueError
from headway_runtime.scheduling.reason import Reason
from headway_runtime.scheduling.timing.step_shape import StepShape, attention_pairs
from headway_runtime.scheduling.view import (
    Carried,
    Lane,
    Limits,
    Prefill,
    StepView,
    TokenDue,
    WaitingRequest,
)
from tests.unit import planned
from tests.unit.planned import BATCH, CEILINGS, CHAT, MODEL, NOW, batch, chat, due

RIVALS = [each.name for each in rivals()]
ALL = [*RIVALS, "sarathi-1", "niyama-1000", *(each.name for each in ablations())]


def view(waiting: Any = (), front: Any = (), **fields: Any) -> StepView:
    """An engine with these requests waiting and this in hand."""
    return planned.view(planned.work(**fields), waiting, front)


def plan(arm: str, seen: StepView) -> StepPlan:
    rival = rival_of(parse(arm))
    with rival.in_force():
        return rival.planner(seen, lambda: False)


def prefill_tokens(seen: StepView, found: StepPlan) -> int:
    assert seen.work is not None
    return found.limits.token_budget - seen.work.decodes


def queue(seen: StepView, found: StepPlan) -> list[str]:
    """Who waits, in the order in which the plan leaves the queue."""
    names = [each.request_id for each in seen.front]
    if not found.placements:
        names += [each.request_id for each in seen.unsettled]
    for each in found.placements:
        names.insert(each.position, each.request_id)
    return [name for name in names if name not in found.late]


def running(request: WaitingRequest, computed: int = 0) -> Prefill:
    return Prefill(
        request.request_id,
        computed,
        request.prefill_tokens,
        request.arrival_s,
        request.traffic_class,
    )


names = st.integers(0, 10**6).map(str)
classes = st.sampled_from((CHAT, BATCH, None))
some_waiting = st.lists(
    st.builds(
        WaitingRequest,
        names.map(lambda name: f"w{name}"),
        st.floats(NOW - 20, NOW),
        classes,
        prefill_tokens=st.integers(1, 30_000),
        is_late=st.booleans(),
    ),
    max_size=12,
    unique_by=lambda each: each.request_id,
)
some_prefills = st.lists(
    st.builds(
        Prefill,
        names,
        st.integers(0, 30_000),
        st.integers(1, 30_000),
        st.floats(NOW - 20, NOW),
        classes,
        st.booleans(),
    ),
    max_size=6,
    unique_by=lambda each: each.request_id,
)
some_fields = st.fixed_dictionaries(
    {
        "free_s": st.floats(NOW, NOW + 0.2),
        "decodes": st.integers(0, 200),
        "decode_context": st.integers(0, 10**6),
        "due": st.lists(
            st.builds(TokenDue, st.floats(NOW - 0.6, NOW + 1), st.sampled_from((0.015, 0.03, 0.1))),
            max_size=3,
        ),
        "prefills": some_prefills,
        "tightest_ttft_s": st.sampled_from((None, 1.0)),
        "kv_usage": st.floats(0, 1),
        "graph_tokens": st.sampled_from((0, 512)),
        "eager_launch_s": st.sampled_from((0.0, 0.03)),
        "carried": st.builds(Carried, st.floats(0, 20_000), st.integers(0, 20), st.integers(0, 3)),
    }
)


@st.composite
def some_views(draw: Any) -> StepView:
    waiting = draw(some_waiting)
    settled = draw(st.integers(0, len(waiting)))
    fields = draw(some_fields)
    # Only who decodes has a token due.
    fields["due"] = fields["due"][: fields["decodes"]]
    return view(
        waiting[settled:], sorted(waiting[:settled], key=lambda each: each.urgency), **fields
    )


@pytest.mark.parametrize("arm", ALL)
@settings(max_examples=25, deadline=None)
@given(seen=some_views())
def test_limits_hold_and_every_decode_gets_its_token(arm: str, seen: StepView) -> None:
    found = plan(arm, seen)
    in_hand = seen.work
    assert in_hand is not None
    assert max(1, in_hand.decodes) <= found.limits.token_budget <= CEILINGS.token_budget
    assert 1 <= found.limits.max_batch_size <= CEILINGS.max_batch_size
    assert isinstance(found.limits.max_batch_size, int)
    remaining = {each.request_id: each.remaining_tokens for each in in_hand.prefills}
    assert found.chunks.keys() == remaining.keys()
    assert all(0 <= chunk <= remaining[name] for name, chunk in found.chunks.items())
    assert in_hand.decodes + sum(found.chunks.values()) <= found.limits.token_budget


@pytest.mark.parametrize("arm", ALL)
@settings(max_examples=25, deadline=None)
@given(seen=some_views())
def test_some_request_goes_on_whenever_one_can(arm: str, seen: StepView) -> None:
    found = plan(arm, seen)
    if not goes_on(seen, found):
        # The engine admits nobody although the plan does: what runs goes on in the next step.
        assert found.admits
        assert seen.work is not None
        after = replace(seen.work, carried=found.carried.after_a_refusal)
        seen = replace(seen, work=after)
        assert goes_on(seen, plan(arm, seen))


def goes_on(seen: StepView, found: StepPlan) -> bool:
    """Whether some request gets a token by this plan, if there is one that could."""
    in_hand = seen.work
    assert in_hand is not None
    waits = len(seen.front) + len(seen.unsettled) > 0
    left = found.limits.token_budget - sum(found.chunks.values())
    admits = waits and left > 0 and found.limits.max_batch_size > seen.running
    nothing_to_do = not (in_hand.decodes or in_hand.prefills or waits)
    return nothing_to_do or bool(in_hand.decodes or sum(found.chunks.values()) or admits)


@pytest.mark.parametrize("arm", ALL)
@settings(max_examples=25, deadline=None)
@given(seen=some_views())
def test_every_newcomer_has_one_place(arm: str, seen: StepView) -> None:
    found = plan(arm, seen)
    if found.placements:
        newcomers = {each.request_id for each in seen.unsettled}
        assert {each.request_id for each in found.placements} == newcomers
        assert len(found.placements) == len(newcomers)
        positions = [each.position for each in found.placements]
        assert positions == sorted(set(positions))
        assert positions[-1] < len(seen.front) + len(newcomers)
    waiting = {each.request_id for each in (*seen.front, *seen.unsettled)}
    assert waiting >= set(found.late)


@pytest.mark.parametrize("arm", [name for name in RIVALS if name.startswith("sarathi")])
@given(seen=some_views())
def test_sarathi_never_plans_a_step_longer_than_its_tbt(arm: str, seen: StepView) -> None:
    found = plan(arm, seen)
    in_hand, tokens = seen.work, prefill_tokens(seen, found)
    assert in_hand is not None
    if in_hand.decodes + tokens <= LEAST_STEP_TOKENS or not tokens:
        return
    # As if it were one prompt from its beginning, which is the least it can be.
    pairs = sum(
        attention_pairs(each.computed_tokens, found.chunks[each.request_id])
        for each in in_hand.prefills
    )
    shape = StepShape(tokens, in_hand.decodes, in_hand.decode_context, pairs)
    assert MODEL.seconds(shape) <= 1.001 * (parse(arm).tbt_ms or 0) / 1000


@pytest.mark.parametrize("arm", ["sarathi-1000000", "niyama", "niyama-0"])
@given(waiting=some_waiting, prefills=some_prefills)
def test_without_a_target_no_token_is_held_back(arm: str, waiting: Any, prefills: Any) -> None:
    seen = view(waiting, prefills=prefills)
    found = plan(arm, seen)
    most = MOST_STEP_TOKENS if arm.startswith("niyama") else CEILINGS.token_budget
    assert found.limits.token_budget == most
    demand = [each.prefill_tokens for each in waiting if each.request_id not in found.late]
    computed = sum(found.chunks.values())
    assert computed + sum(demand) >= min(
        most, sum(each.remaining_tokens for each in prefills) + sum(demand)
    )


def test_sarathi_serves_in_order_of_arrival() -> None:
    seen = view([batch("b"), chat("c")], prefills=[running(batch("r", 500))])
    found = plan("sarathi-30", seen)
    assert found.chunks == {"r": 500}
    assert queue(seen, found) == ["b", "c"]
    assert found.admits
    assert not found.placements


def test_sarathi_by_priority_puts_first_who_has_a_ttft_and_holds_back_nobody() -> None:
    seen = view([batch("b"), chat("c")], prefills=[running(batch("r", 5000))])
    found = plan("sarathi-30-priority", seen)
    assert queue(seen, found) == ["c", "b"]
    assert found.chunks["r"] == prefill_tokens(seen, found)
    assert not found.admits


def test_sarathis_step_does_not_depend_on_what_is_due() -> None:
    waiting, fields = [batch("b", 8000)], {"decodes": 50, "decode_context": 50_000}
    pressed = plan("sarathi-30", view(waiting, due=due(0.001), **fields))
    idle = plan("sarathi-30", view(waiting, due=due(0.9), **fields))
    assert pressed == idle
    assert LEAST_STEP_TOKENS < pressed.limits.token_budget < CEILINGS.token_budget
    assert Reason.TOKENS_DUE in pressed.reasons


def test_a_longer_tbt_gives_longer_steps() -> None:
    seen = view([batch("b", 8000)], decodes=50)
    found = [plan(f"sarathi-{tbt_ms}", seen).limits.token_budget for tbt_ms in (15, 30, 100)]
    assert found == sorted(set(found))


@pytest.mark.parametrize("arm", ["sarathi-30", "niyama"])
def test_a_step_whose_launch_would_take_too_long_fits_a_graph(arm: str) -> None:
    fields = {"decodes": 50, "due": due(0.03), "graph_tokens": 512}
    slow = plan(arm, view([batch("b", 8000)], eager_launch_s=0.04, **fields))
    fast = plan(arm, view([batch("b", 8000)], eager_launch_s=0.02, **fields))
    assert slow.limits.token_budget == 512
    assert fast.limits.token_budget > 512


@pytest.mark.parametrize("arm", RIVALS)
def test_a_target_that_cannot_be_met_does_not_stop_prompts(arm: str) -> None:
    fields = {"decodes": 20, "decode_context": 10**7, "due": due(-0.1)}
    found = plan(arm, view([chat("c", 5000)], **fields))
    assert found.limits.token_budget == LEAST_STEP_TOKENS


def test_niyamas_chunk_follows_the_least_slack() -> None:
    waiting = [batch("b", 8000)]
    budgets = [
        plan("niyama", view(waiting, decodes=10, due=due(*slack))).limits.token_budget
        for slack in ((0.02, 0.9), (0.04, 0.9), (0.06,), (0.5,))
    ]
    assert budgets == sorted(set(budgets))
    assert budgets[-1] == MOST_STEP_TOKENS
    shape = StepShape(budgets[1] - 10, 10, 0, attention_pairs(0, budgets[1] - 10))
    assert MODEL.seconds(shape) == pytest.approx(0.04, rel=0.01)


@pytest.mark.parametrize(
    ("arm", "order"), [("niyama-0", ["long", "short", "b"]), ("niyama", ["short", "long", "b"])]
)
def test_alpha_turns_deadlines_into_shortest_first(arm: str, order: list[str]) -> None:
    waiting = [batch("b", 100), chat("long", 2000, NOW - 0.5), chat("short", 20)]
    for settled in range(4):
        front = sorted(waiting[:settled], key=lambda each: order.index(each.request_id))
        seen = view(waiting[settled:], front)
        assert queue(seen, plan(arm, seen)) == order


def test_niyama_holds_back_a_prompt_for_a_more_urgent_one() -> None:
    seen = view([chat("c", 3000)], prefills=[running(batch("r"))])
    found = plan("niyama", seen)
    assert found.chunks == {"r": 0}
    assert found.admits


def test_nobody_is_held_back_for_one_that_has_no_slot() -> None:
    found = plan("niyama", view([chat("c", 3000)], prefills=[running(batch("r"))], decodes=255))
    assert found.chunks == {"r": MOST_STEP_TOKENS - 255}
    assert not found.admits


def test_after_a_refusal_what_runs_goes_first() -> None:
    carried = Carried(running_first_steps=3)
    found = plan("niyama", view([chat("c", 3000)], prefills=[running(batch("r"))], carried=carried))
    assert found.chunks == {"r": MOST_STEP_TOKENS}
    assert found.carried.running_first_steps == 2


def test_niyama_relegates_who_cannot_make_it_any_more() -> None:
    lost, kept = chat("lost", 3000, NOW - 0.99), chat("kept", 300, NOW - 0.9)
    seen = view([chat("next", 300)], [lost, kept, batch("b")])
    found = plan("niyama-0", seen)
    assert found.late == ("lost",)
    assert queue(seen, found) == ["kept", "next", "b"]


def test_what_was_relegated_goes_behind_all_others() -> None:
    seen = view([chat("late", 10, NOW - 5, is_late=True)], [batch("b")])
    found = plan("niyama", seen)
    assert queue(seen, found) == ["b", "late"]
    assert not found.late


def test_a_deadline_for_the_last_token_is_one_to_relegate_by() -> None:
    found = plan("niyama", view([batch("b", 300, NOW - 61), batch("c", 300, NOW - 50)]))
    assert found.late == ("b",)


def test_a_prompt_that_runs_is_never_relegated() -> None:
    found = plan("niyama", view(prefills=[running(chat("r", 3000, NOW - 5))]))
    assert not found.late
    assert found.chunks == {"r": MOST_STEP_TOKENS}


def test_a_step_relegates_only_so_many() -> None:
    seen = view([chat(f"c{number}", 300, NOW - 5) for number in range(20)])
    assert len(plan("niyama", seen).late) == RELEGATED_A_STEP


def test_slow_prefill_beside_decodes_counts_for_relegation() -> None:
    prompt = [chat("c", 8000, NOW - 0.7)]
    assert not plan("niyama", view(prompt)).late
    assert plan("niyama", view(prompt, decodes=200, decode_context=400_000, due=due(0.03))).late


@pytest.mark.parametrize("arm", RIVALS)
def test_a_plan_that_takes_too_long_is_given_up(arm: str) -> None:
    with pytest.raises(PlanOverdueError):
        rival_of(parse(arm)).planner(view([chat("c")]), lambda: True)


@pytest.mark.parametrize("arm", RIVALS)
def test_without_sight_of_the_work_the_ceilings_hold(arm: str) -> None:
    found = plan(arm, replace(view([batch("b"), chat("c")]), work=None))
    assert found.limits == CEILINGS
    assert not found.chunks


@pytest.mark.parametrize("arm", RIVALS)
def test_limits_of_classes_are_refused(arm: str) -> None:
    with pytest.raises(ValueError, match="limits of classes"):
        plan(arm, replace(view(), lanes=(Lane("batch", 1),)))


@pytest.mark.parametrize("blocks", [400, 10_000])
@pytest.mark.parametrize("arm", ALL)
def test_an_engine_gets_all_its_work_done(arm: str, blocks: int) -> None:
    random, rival = Random(7), rival_of(parse(arm))  # noqa: S311 - no secret
    engine = SimulatedEngine(Limits(2048, 64), KvBlocks(blocks), GpuStepTime())
    engine.planner = rival.planner
    engine.adopt(Policy(Scope("test"), Stamp(1, 0, 0), classes=(CHAT, BATCH)))
    at = 0.0
    for _ in range(60):
        at += random.expovariate(30)
        name, most = random.choice((("chat", 500), ("batch", 5000)))
        engine.send(Arrival(at, name, random.randint(1, most), random.randint(1, 60)))
    with rival.in_force():
        engine.run_to_the_end(120.0)
    report = engine.report()
    assert (report.running, report.waiting) == (0, 0)
    assert sum(each.requests_total for each in report.classes.values()) == 60
    assert engine.now_s < 120
