"""Which policies replace the one in force."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.policy import Mode
from headway_runtime.sidecar.acceptance import Outcome, accept
from tests.unit.runtime.policies import POD, SERVICE, policies, policy


def decide(candidate: Any, current: Any) -> Any:
    return accept(candidate, current, SERVICE, POD)


@given(st.lists(policies, max_size=20))
def test_the_stamp_in_force_never_goes_back(sent: Any) -> None:
    current = None
    for candidate in sent:
        outcome = decide(candidate, current)
        if outcome is Outcome.APPLIED:
            assert current is None or candidate.stamp > current.stamp
            current = candidate


@given(st.lists(policies, max_size=20), st.randoms())
def test_the_highest_stamp_wins_in_whatever_order_policies_come(sent: Any, random: Any) -> Any:
    def last_of(order: Any) -> Any:
        current = None
        for candidate in order:
            if decide(candidate, current) is Outcome.APPLIED:
                current = candidate
        return None if current is None else current.stamp

    shuffled = list(sent)
    random.shuffle(shuffled)
    assert last_of(sent) == last_of(shuffled)


@pytest.mark.parametrize(
    ("candidate", "current", "outcome"),
    [
        (policy(1, 0, 0), None, Outcome.APPLIED),
        (policy(1, 0, 1), policy(1, 0, 0), Outcome.APPLIED),
        (policy(1, 1, 0), policy(1, 0, 9), Outcome.APPLIED),
        (policy(2, 0, 0), policy(1, 9, 9), Outcome.APPLIED),
        (policy(1, 0, 0), policy(1, 0, 0), Outcome.ALREADY_APPLIED),
        (policy(1, 0, 0, mode=Mode.OFF), policy(1, 0, 0), Outcome.OUTDATED),
        (policy(1, 0, 9), policy(1, 1, 0), Outcome.OUTDATED),
        (policy(1, 0, 1, pod=POD), policy(1, 0, 0), Outcome.APPLIED),
        (policy(1, 0, 1, pod="other"), policy(1, 0, 0), Outcome.WRONG_SCOPE),
        (policy(1, 0, 1, service="other"), None, Outcome.WRONG_SCOPE),
    ],
)
def test_table(candidate: Any, current: Any, outcome: Any) -> None:
    assert decide(candidate, current) is outcome
