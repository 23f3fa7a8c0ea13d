"""What holds of every plan, whatever the snapshot."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headway_operator.decide import decide
from headway_operator.observe.records import PodRecord
from headway_operator.snapshot import Snapshot
from tests.unit.operator.samples import (
    CRASHING,
    NOW,
    OPERATOR,
    STALLING,
    later,
    loading_pod,
    pod,
    ready_pod,
    service,
    settled,
    snapshot,
    spec,
)

PODS: dict[str, PodRecord] = {
    "none": pod(),
    "loading": loading_pod(),
    "ready": ready_pod(),
    "stalling": STALLING,
    "crashing": CRASHING,
    "old": ready_pod(template="old"),
}
STATES = st.tuples(
    st.lists(st.sampled_from(sorted(PODS)), max_size=4),
    st.integers(0, 3),
    st.sampled_from(["Act", "Off"]),
    st.booleans(),
)


def made(state: tuple[list[str], int, str, bool]) -> Snapshot:
    kinds, replicas, mode, is_new = state
    pods = [
        replace(PODS[kind], name=f"demo-{at}", uid=f"uid-{at}") for at, kind in enumerate(kinds)
    ]
    record = service(spec(replicas=replicas, scheduling={"mode": mode}))
    return snapshot(record, *pods, **({"children": {}} if is_new else {}))


@given(STATES)
def test_same_snapshot_gives_the_same_plan(state: tuple[list[str], int, str, bool]) -> None:
    assert decide(made(state), NOW) == decide(made(state), NOW)


@given(STATES, st.integers(0, 100_000))
def test_nothing_happens_while_nothing_changes(
    state: tuple[list[str], int, str, bool], seconds: int
) -> None:
    before = settled(made(state))
    plan = decide(before, later(seconds))
    assert not plan.status_changed
    assert (plan.notices, plan.applications, plan.recipients) == ((), (), ())
    assert plan.published == before.published


@given(STATES, STATES, st.integers(1, 1000))
def test_transition_time_moves_only_with_the_status(
    old: tuple[list[str], int, str, bool],
    new: tuple[list[str], int, str, bool],
    seconds: int,
) -> None:
    before = settled(made(old))
    after = replace(made(new), service=replace(made(new).service, status=before.service.status))
    plan = decide(after, later(seconds))
    for was, now in zip(before.service.status.conditions, plan.status.conditions, strict=True):
        moved = was.last_transition_time != now.last_transition_time
        assert moved == (was.status != now.status)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["Act", "Shadow", "Off"])), max_size=8)
)
def test_stamp_rises_exactly_when_something_changed(steps: list[tuple[int, str]]) -> None:
    generation, epoch, mode = 1, 1, "Act"
    published, stamps = None, []
    for step, wanted in steps:
        epoch += step == 0
        generation += wanted != mode
        mode = wanted
        before = snapshot(
            service(spec(scheduling={"mode": mode}), generation=generation),
            published=published,
            operator=replace(OPERATOR, epoch=epoch),
        )
        published = decide(before, NOW).published
        assert published is not None
        assert published.policy.mode.value == mode
        stamps.append((published.policy.stamp, (generation, epoch)))
    for (earlier, old), (following, new) in itertools.pairwise(stamps):
        assert following >= earlier
        assert (following > earlier) == (old != new)


def test_content_change_within_a_term_raises_the_counter() -> None:
    first = decide(snapshot(), NOW).published
    assert first is not None
    other = replace(first, policy=replace(first.policy, max_batch_size=5))
    again = decide(snapshot(published=other), later(9)).published
    assert again is not None
    assert again.policy.stamp == replace(first.policy.stamp, counter=2)
    assert again.since == later(9).unix
