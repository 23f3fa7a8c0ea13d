"""To zero and back behind a router."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headway_operator.api.labels import ACTIVATOR, ROUTER
from headway_operator.observe.activators import ActivatorReport
from tests.unit.operator.scaling.zero_world import ACTIVATOR_POD, EXTERNAL, World, fields

ROUTED = fields(router={"enabled": True})


def test_at_zero_a_router_has_no_pods_and_with_the_engine_they_come_back() -> None:
    world = World(ROUTED)
    world.tick(4)
    assert (world.points_to, world.routers_wanted) == (ROUTER, 2)
    while world.replicas:
        assert world.routers_wanted == 2  # what is on its way still goes through it
        world.tick()
    assert (world.points_to, world.routers_wanted) == (ACTIVATOR, 0)
    world.starts, world.report = 30, ActivatorReport(1, 0, world.now)
    world.tick()
    assert (world.replicas, world.points_to, world.routers_wanted) == (1, ACTIVATOR, 2)
    world.tick(8)
    assert (world.points_to, world.routers_wanted) == (ROUTER, 2)


@settings(deadline=None, max_examples=15)
@given(
    st.lists(
        st.tuples(st.sampled_from(["running", "asked", "alone", "nobody"]), st.integers(1, 20)),
        min_size=1,
        max_size=8,
    ),
    st.booleans(),
)
def test_the_service_turns_to_no_router_without_pods_and_none_goes_that_is_in_use(
    story: list[tuple[str, int]], is_external: bool
) -> None:
    declared = fields(EXTERNAL, replicas=0, router={"enabled": True}) if is_external else ROUTED
    world = World(declared, starts=10)
    world.tick()
    for what, ticks in story:
        for _ in range(ticks):
            before, pointed_to = world.routers_wanted, world.points_to
            world.running = int(what == "running")
            world.activators = () if what == "alone" else (ACTIVATOR_POD,)
            world.report = ActivatorReport(0, 0, world.now if what == "asked" else None)
            world.tick()
            if world.points_to == ROUTER:
                assert before > 0
                assert world.routers_wanted > 0
            # They go and come with the engines, and never otherwise.
            is_at_zero = world.replicas == 0 and pointed_to == ACTIVATOR
            assert (world.routers_wanted == 0) == is_at_zero
