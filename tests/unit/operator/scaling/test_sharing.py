"""Who gets how many of the GPUs that are not enough for all."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway_operator.decide.scaling.sharing import divide
from headway_operator.memory.claims import GpuClaim
from headway_operator.observe.records import ServiceKey
from tests.unit.operator.scaling import plain_sharing


def claim(name: str, wanted: int, **more: int) -> GpuClaim:
    known = {"gpus": 1, "least": 0, "running": more.get("least", 0), **more}
    return GpuClaim(ServiceKey("team", name), wanted=wanted, **known)


@st.composite
def claims_of(draw: st.DrawFn, *, most_gpus: int = 4) -> list[GpuClaim]:
    found = []
    for number in range(draw(st.integers(1, 7))):
        least = draw(st.integers(0, 4))
        wanted = least + draw(st.integers(0, 12))
        found.append(
            claim(
                f"s{number}",
                wanted,
                least=least,
                gpus=draw(st.integers(1, most_gpus)),
                running=draw(st.integers(0, 16)),
                priority=draw(st.integers(-1, 1)),
            )
        )
    return found


quotas = st.integers(0, 80)


def by_name(gpus: int, *claims: GpuClaim) -> dict[str, int]:
    return {key.name: pods for key, pods in divide(gpus, claims).items()}


def used(claims: Sequence[GpuClaim], granted: dict[ServiceKey, int]) -> int:
    return sum(granted[each.key] * each.gpus for each in claims)


def as_granted(claims: Sequence[GpuClaim], granted: dict[ServiceKey, int]) -> list[GpuClaim]:
    return [replace(each, running=granted[each.key]) for each in claims]


@given(quotas, claims_of(most_gpus=8))
@settings(max_examples=400)
def test_it_is_what_the_rule_says_word_for_word(gpus: int, claims: list[GpuClaim]) -> None:
    assert divide(gpus, claims) == plain_sharing.divide(gpus, claims)


@given(quotas, claims_of())
def test_everybody_has_its_least_and_nobody_more_than_it_wants(
    gpus: int, claims: list[GpuClaim]
) -> None:
    granted = divide(gpus, claims)
    assert all(each.least <= granted[each.key] <= each.wanted for each in claims)


@given(quotas, claims_of())
def test_never_more_than_there_is_but_for_what_everybody_must_have(
    gpus: int, claims: list[GpuClaim]
) -> None:
    least = sum(each.least * each.gpus for each in claims)
    assert used(claims, divide(gpus, claims)) <= max(gpus, least)


@given(quotas, claims_of())
def test_nothing_is_left_that_somebody_could_use(gpus: int, claims: list[GpuClaim]) -> None:
    granted = divide(gpus, claims)
    free = gpus - used(claims, granted)
    assert all(each.gpus > free for each in claims if granted[each.key] < each.wanted)


@given(quotas, claims_of())
def test_who_has_a_higher_priority_does_not_miss_what_a_lower_one_has_beyond_its_least(
    gpus: int, claims: list[GpuClaim]
) -> None:
    granted = divide(gpus, claims)
    free = gpus - used(claims, granted)
    for high in (each for each in claims if granted[each.key] < each.wanted):
        lower = [each for each in claims if each.priority < high.priority]
        taken = sum((granted[each.key] - each.least) * each.gpus for each in lower)
        assert max(0, free) + taken < high.gpus


@given(quotas, claims_of(most_gpus=1))
def test_equals_get_in_proportion_to_what_they_miss(gpus: int, claims: list[GpuClaim]) -> None:
    equals = [replace(each, priority=0) for each in claims]
    granted = divide(gpus, equals)
    left = max(0, gpus - sum(each.least for each in equals))
    asked = sum(each.wanted - each.least for each in equals)
    part = min(1.0, left / asked) if asked else 0.0
    off = [granted[each.key] - each.least - part * (each.wanted - each.least) for each in equals]
    assert max(off) - min(off) < 2.0 + 1e-9
    # With nobody's pods to spare it is as fair as whole pods can be.
    anew = divide(gpus, [replace(each, running=0) for each in equals])
    for each in equals:
        assert abs(anew[each.key] - each.least - part * (each.wanted - each.least)) < 1.0


@given(quotas, claims_of())
@settings(max_examples=400)
def test_what_was_granted_is_granted_again(gpus: int, claims: list[GpuClaim]) -> None:
    granted = divide(gpus, claims)
    assert divide(gpus, as_granted(claims, granted)) == granted


@given(quotas, claims_of(), st.randoms(use_true_random=False))
def test_the_order_in_which_services_are_known_says_nothing(
    gpus: int, claims: list[GpuClaim], chance: random.Random
) -> None:
    shuffled = list(claims)
    chance.shuffle(shuffled)
    assert divide(gpus, shuffled) == divide(gpus, claims)


@given(quotas, claims_of(), st.data())
def test_one_pod_more_or_less_wanted_moves_no_pod_between_equals(
    gpus: int, claims: list[GpuClaim], data: st.DataObject
) -> None:
    equals = [replace(each, priority=0, gpus=1, least=0) for each in claims]
    granted = divide(gpus, [replace(each, running=0) for each in equals])
    settled = as_granted(equals, granted)
    changed = data.draw(st.sampled_from(settled))
    more = [replace(each, wanted=each.wanted + 1) if each is changed else each for each in settled]
    after = divide(gpus, more)
    assert all(after[each.key] >= granted[each.key] for each in equals)


def test_the_higher_priority_gets_what_it_wants_and_the_lower_what_is_left() -> None:
    high = claim("high", 5, least=1, priority=10)
    low = claim("low", 6, least=1, running=6)
    assert by_name(8, high, low) == {"high": 5, "low": 3}
    assert by_name(3, high, low) == {"high": 2, "low": 1}


def test_what_is_too_little_for_one_pod_of_the_higher_goes_to_the_lower() -> None:
    high = claim("high", 3, least=1, gpus=4, priority=10)
    assert by_name(10, high, claim("low", 5)) == {"high": 2, "low": 2}


def test_equals_that_miss_twice_as_much_get_twice_as_much() -> None:
    assert by_name(9, claim("a", 12), claim("b", 6)) == {"a": 6, "b": 3}
    assert by_name(10, claim("a", 12, gpus=2), claim("b", 24)) == {"a": 2, "b": 6}


@pytest.mark.parametrize("wanted", [6, 7, 8])
def test_equals_keep_their_pods_while_what_they_want_changes_a_little(wanted: int) -> None:
    one, other = claim("a", wanted, running=4), claim("b", 7, running=4)
    assert by_name(8, one, other) == {"a": 4, "b": 4}


def test_a_newcomer_gets_its_share_of_what_an_equal_had_alone() -> None:
    assert by_name(8, claim("a", 8, running=8), claim("b", 8)) == {"a": 4, "b": 4}
