"""Who is suspected of having killed an engine, tried, refused and cleared."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.scheduling.quarantine.suspects import (
    LONGEST_S,
    MOST_SUSPECTS,
    QUARANTINE_S,
    REMEMBERED_S,
    Standing,
    Suspect,
    Suspects,
    UnderWay,
    after_crash,
    cleared,
    standing,
)

NOW_S = 1_700_000_000.0
POISON = b"poison"
FREE, TRIED, QUARANTINED = Standing.FREE, Standing.TRIED, Standing.QUARANTINED


def crashed(*lives: list[UnderWay], every_s: float = 60.0) -> tuple[dict[bytes, Suspect], float]:
    """Suspects after engines died with these, and when the last one did."""
    suspects: dict[bytes, Suspect] = {}
    now_s = NOW_S
    for under_way in lives:
        now_s += every_s
        suspects = after_crash(suspects, under_way, now_s)
    return suspects, now_s


def new(name: bytes) -> UnderWay:
    return UnderWay(name)


def old(name: bytes) -> UnderWay:
    return UnderWay(name, has_token=True)


@pytest.mark.parametrize(
    ("lives", "expected"),
    [
        ([], FREE),
        ([old(POISON)], FREE),
        ([new(POISON)], TRIED),
        ([old(POISON), old(POISON)], TRIED),
        ([old(POISON), new(POISON)], TRIED),
        ([new(POISON), new(POISON)], QUARANTINED),
        ([old(POISON), old(POISON), old(POISON)], QUARANTINED),
        ([new(POISON), old(POISON), old(POISON)], QUARANTINED),
    ],
)
def test_what_it_takes(lives: list[UnderWay], expected: Standing) -> None:
    suspects, now_s = crashed(*([each] for each in lives))
    assert standing(suspects.get(POISON), now_s) is expected


def test_several_requests_with_one_fingerprint_count_once() -> None:
    suspects, _ = crashed([old(POISON), new(POISON), new(POISON), old(POISON)])
    assert suspects[POISON][1:3] == (1, 1)


def test_a_culprit_is_refused_for_a_while_then_tried_then_forgotten() -> None:
    suspects, now_s = crashed([new(POISON)], [new(POISON)])
    found = [
        standing(suspects[POISON], now_s + later_s)
        for later_s in (0, QUARANTINE_S - 1, QUARANTINE_S, REMEMBERED_S - 1, REMEMBERED_S, -1)
    ]
    assert found == [QUARANTINED, QUARANTINED, TRIED, TRIED, FREE, TRIED]


def test_each_further_crash_makes_it_longer_up_to_a_day() -> None:
    lengths = []
    for crashes in range(2, 40):
        suspects, now_s = crashed(*([new(POISON)] for _ in range(crashes)))
        lengths.append(suspects[POISON].free_s - now_s)
    assert lengths[:4] == [QUARANTINE_S, 4 * QUARANTINE_S, 16 * QUARANTINE_S, 64 * QUARANTINE_S]
    assert lengths == sorted(lengths)
    assert lengths[-1] == LONGEST_S < REMEMBERED_S


def test_after_days_without_a_crash_it_is_the_first_one_again() -> None:
    suspects, now_s = crashed([new(POISON)], [new(b"other")], every_s=REMEMBERED_S)
    assert set(suspects) == {b"other"}
    assert suspects[b"other"].last_s == now_s


def test_who_ended_well_is_suspected_no_more() -> None:
    suspects, now_s = crashed([new(POISON), new(b"neighbour")])
    suspects = cleared(suspects, b"neighbour")
    assert standing(suspects.get(b"neighbour"), now_s) is FREE
    assert standing(suspects.get(POISON), now_s) is TRIED


def test_there_are_only_so_many_and_the_guilty_stay() -> None:
    crowd = [old(b"%06d" % number) for number in range(3 * MOST_SUSPECTS)]
    suspects, now_s = crashed([new(POISON)], [new(POISON)], [new(b"tried")], crowd, crowd[::-1])
    assert len(suspects) == MOST_SUSPECTS
    assert standing(suspects[POISON], now_s) is QUARANTINED
    assert standing(suspects[b"tried"], now_s) is TRIED


@dataclass
class Service:
    """Engines that start one after the other, behind a door that tries suspects one at a time.

    Attributes:
        kills_after: answers of the poison until it kills: none, or at its second token.
        suspects: so far.
        crashes: so far.
    """

    kills_after: int
    suspects: Suspects = field(default_factory=dict)
    crashes: int = 0

    def life(self, coming: list[bytes], slow: frozenset[bytes]) -> None:
        """One engine: these come at once, each step gives each a token; the slow ones need long."""
        now_s = NOW_S + self.crashes
        waiting = [each for each in coming if standing(self.suspects.get(each), now_s) is TRIED]
        running = {each: 0 for each in coming if standing(self.suspects.get(each), now_s) is FREE}
        on_trial: bytes | None = None
        for step in range(200):
            if on_trial is None and waiting:
                on_trial = waiting.pop(0)
                running[on_trial] = 0
            if POISON in running and running[POISON] == self.kills_after:
                under_way = [UnderWay(each, "", tokens > 0) for each, tokens in running.items()]
                self.crashes += 1
                self.suspects = after_crash(self.suspects, under_way, now_s + 1)
                return
            for each in list(running):
                if each in slow and step % 8:
                    # Its prompt is long.
                    continue
                running[each] += 1
                if running[each] > 3 and each != POISON:
                    del running[each]
                    self.suspects = cleared(self.suspects, each)
                    on_trial = None if each == on_trial else on_trial

    def refuses(self, name: bytes) -> bool:
        return standing(self.suspects.get(name), NOW_S + self.crashes) is QUARANTINED


names = st.integers(0, 30).map(lambda number: b"n%d" % number)
neighbours = st.lists(st.tuples(st.lists(names, unique=True), st.frozensets(names)), min_size=4)


@given(neighbours, st.randoms(use_true_random=False))
def test_what_kills_before_its_token_is_found_in_two_crashes_among_any_neighbours(
    lives: list[tuple[list[bytes], frozenset[bytes]]], chance: object
) -> None:
    service = Service(kills_after=0)
    everybody: set[bytes] = set()
    for number, (others, slow) in enumerate(lives):
        # All that was there before comes again with what is new.
        everybody |= set(others)
        coming = [POISON, *sorted(everybody)]
        chance.shuffle(coming)  # type: ignore[attr-defined]
        if not service.refuses(POISON):
            service.life(coming, slow)
        assert service.refuses(POISON) is (number >= 1)
        assert not [each for each in everybody if service.refuses(each)]
    assert service.crashes == 2


@given(neighbours, st.randoms(use_true_random=False))
def test_what_kills_later_is_found_in_three(
    lives: list[tuple[list[bytes], frozenset[bytes]]], chance: object
) -> None:
    service = Service(kills_after=2)
    everybody: set[bytes] = set()
    for others, slow in lives:
        everybody |= set(others)
        coming = [POISON, *sorted(everybody)]
        chance.shuffle(coming)  # type: ignore[attr-defined]
        if not service.refuses(POISON):
            service.life(coming, slow)
        # Who was tried just then, and had no token, pays for it: once, and not for long.
        wronged = [each for each in everybody if service.refuses(each)]
        assert len(wronged) <= 1
        assert all(service.suspects[each].before_token == 2 for each in wronged)
    assert service.refuses(POISON)
    assert service.crashes == 3
