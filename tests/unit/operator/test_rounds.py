"""Quiet services take turns, all others are looked at in every tick."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway_operator.observe.records import ServiceKey
from headway_operator.rounds import QUIET_TICKS, Rounds

KEYS = [ServiceKey("team", f"service-{n}") for n in range(20)]


@given(st.sets(st.sampled_from(KEYS)), st.sets(st.sampled_from(KEYS)))
def test_who_has_something_to_do_is_never_left_out(
    quiet: set[ServiceKey], working: set[ServiceKey]
) -> None:
    rounds = Rounds(lambda pods: any(key in working for key in pods))  # type: ignore[comparison-overlap]
    for key in quiet:
        rounds.looked_at(key, is_quiet=True)
    seen: set[ServiceKey] = set()
    for _ in range(QUIET_TICKS):
        due = rounds.due(KEYS, lambda key: [key])  # type: ignore[list-item,return-value]
        assert set(due) >= (set(KEYS) - quiet) | working
        seen.update(due)
    assert seen == set(KEYS)


def test_quiet_services_are_spread_over_the_ticks() -> None:
    rounds = Rounds(lambda _: False)
    for key in KEYS:
        rounds.looked_at(key, is_quiet=True)
    counts = [len(rounds.due(KEYS, lambda _: ())) for _ in range(QUIET_TICKS)]
    assert sum(counts) == len(KEYS)
    assert max(counts) <= len(KEYS) / QUIET_TICKS + 1
    rounds.looked_at(KEYS[0], is_quiet=False)
    assert all(KEYS[0] in rounds.due(KEYS, lambda _: ()) for _ in range(QUIET_TICKS))
