"""Which programs are kept."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.scheduling.programs.priority import Weights
from headway_runtime.scheduling.programs.shelf import ProgramShelf
from headway_runtime.scheduling.programs.state import Program

WEIGHTS = Weights(0.5, 0.3, 0.2)
MOST = 6


def program(name: str, tenant: str = "one", used_s: float = 0.0) -> Program:
    return Program((tenant, name), WEIGHTS, 0, used_s)


def names(shelf: ProgramShelf) -> str:
    return "".join(sorted(each.key[1] for each in shelf))


def filled(idle: str = "", busy: str = "", tenant: str = "one") -> ProgramShelf:
    shelf = ProgramShelf(MOST)
    for name in busy + idle:
        shelf.add(program(name, tenant))
    for name in idle:
        found = shelf.get((tenant, name))
        assert found is not None
        shelf.rest(found)
    return shelf


def test_what_is_idle_goes_before_what_is_busy() -> None:
    shelf = filled(idle="cd", busy="abef")
    shelf.add(program("g"))
    assert names(shelf) == "abdefg"


def test_with_many_tenants_what_is_idle_goes_first_too() -> None:
    shelf = ProgramShelf(MOST)
    for tenant in "uvwxyz":
        shelf.add(program("p", tenant))
    idle = shelf.get(("y", "p"))
    assert idle is not None
    shelf.rest(idle)
    assert shelf.add(program("q", "u")) is idle


def test_what_was_used_least_recently_goes_first() -> None:
    shelf = filled(idle="abcdef")
    again = shelf.use(("one", "a"))
    assert again is not None
    shelf.rest(again)
    assert shelf.add(program("g")) is not None
    assert names(shelf) == "acdefg"


def test_a_busy_program_goes_where_none_is_idle() -> None:
    shelf = filled(busy="abcdef")
    gone = shelf.add(program("g"))
    assert gone is not None
    assert gone.key[1] == "a"


def test_a_tenant_takes_no_more_than_half_from_the_others() -> None:
    shelf = filled(idle="abcdef", tenant="first")
    for i in range(100):
        flood = program(str(i), "flood")
        shelf.add(flood)
        shelf.rest(flood)
    kept = [each for each in shelf if each.key[0] == "first"]
    # More than half is when it begins to replace its own.
    assert len(kept) == MOST // 2 - 1
    assert len(shelf) == MOST


def test_programs_that_rested_long_are_taken_out() -> None:
    shelf = ProgramShelf(MOST)
    for name, used_s in (("a", 1.0), ("b", 2.0), ("c", 3.0)):
        each = program(name, used_s=used_s)
        shelf.add(each)
        shelf.rest(each)
    shelf.add(program("d", used_s=0.0))
    assert [each.key[1] for each in shelf.idle_before(3.0)] == ["a", "b"]
    assert names(shelf) == "cd"


def test_what_is_gone_does_not_come_back_by_resting() -> None:
    shelf = ProgramShelf(1)
    old, new = program("a"), program("b")
    shelf.add(old)
    assert shelf.add(new) is old
    shelf.rest(old)
    assert names(shelf) == "b"


events = st.lists(
    st.tuples(
        st.sampled_from(["use", "rest", "sweep"]),
        st.sampled_from("xyz"),
        st.sampled_from("abcdefgh"),
    ),
    max_size=60,
)


@given(events)
def test_it_is_never_too_full_and_forgets_tenants_without_programs(happened: list[Any]) -> None:
    shelf = ProgramShelf(MOST)
    for time_s, (what, tenant, name) in enumerate(happened):
        found = shelf.get((tenant, name))
        if what == "use" and shelf.use((tenant, name)) is None:
            shelf.add(program(name, tenant, float(time_s)))
            assert shelf.get((tenant, name)) is not None
        elif what == "rest" and found is not None:
            shelf.rest(found)
        elif what == "sweep":
            list(shelf.idle_before(time_s - 10.0))
        assert len(shelf) <= MOST
        keys = [each.key for each in shelf]
        assert len(set(keys)) == len(keys) == len(shelf)
        of_tenants = [key for own in shelf._of_tenant.values() for key in own]
        assert sorted(of_tenants) == sorted(keys)
        assert all(shelf._of_tenant.values())
