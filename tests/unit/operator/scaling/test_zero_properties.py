"""To zero and back, whatever happens in whatever order."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headway_operator.api.labels import ACTIVATOR
from headway_operator.observe.activators import ActivatorReport
from tests.unit.operator.scaling.zero_world import (
    ACTIVATOR_POD,
    EXTERNAL,
    IDLE_SECONDS,
    TICK_SECONDS,
    World,
    fields,
)

EVENTS = st.sampled_from(["running", "tokens", "held", "asked", "blind", "deaf", "alone", "nobody"])


@settings(deadline=None, max_examples=15)
@given(st.lists(st.tuples(EVENTS, st.integers(1, 20)), min_size=1, max_size=12), st.booleans())
def test_pods_go_only_when_nobody_was_there_and_come_when_somebody_is(
    story: list[tuple[str, int]], is_external: bool
) -> None:
    """Whatever happens: the last pods go after a whole idle time in which all was known."""
    world = World(fields(EXTERNAL, replicas=0) if is_external else None, starts=10)
    unused_since = 0.0
    for what, ticks in story:
        for _ in range(ticks):
            before = 0 if world.snapshot.rollout is None else world.replicas
            world.running = int(what == "running" and before > 0)
            world.tokens += what == "tokens"
            world.has_metrics = what != "blind"
            world.activators = () if what == "alone" else (ACTIVATOR_POD,)
            held = int(what == "held")
            asked_at = world.now if what in {"held", "asked"} else None
            world.report = None if what == "deaf" else ActivatorReport(held, 0, asked_at)
            replicas = world.tick()
            if what in {"running", "tokens"} and before > 0:
                unused_since = world.now
            if what in {"held", "asked"}:
                unused_since = world.now - TICK_SECONDS
                assert replicas == 1
            if before > 0 and replicas == 0:
                assert what == "nobody"
                assert world.now - unused_since >= IDLE_SECONDS
                assert world.points_to == ACTIVATOR
            if replicas == 0 and before == 0:
                assert what not in {"held", "asked"}
            assert 0 <= replicas <= 1
