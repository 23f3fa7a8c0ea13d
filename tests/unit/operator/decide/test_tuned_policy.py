"""What was tuned is in the policy, and a new operator goes on from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway_operator.decide import decide
from headway_operator.decide.notices import decide_notices
from headway_operator.decide.retune import Change, Reason, Retuned, What
from headway_operator.memory.tuning import OperatingPoint, Tuning
from headway_operator.observe.sidecars import HeldPoint, SidecarReport
from headway_runtime.policy import Stamp
from tests.unit.operator.decide.tuned_service import POINT, tuned
from tests.unit.operator.samples import NOW, OPERATOR, ready_pod, settled, snapshot


@pytest.mark.parametrize("mode", ["Act", "Shadow"])
def test_policy_says_what_was_tuned(mode: str) -> None:
    plan = decide(tuned(mode), NOW)
    assert plan.published is not None
    policy = plan.published.policy
    assert (policy.theta_ppm, policy.token_budget, policy.max_batch_size) == (250_000, 256, 8)
    assert {each.name: each.max_running for each in policy.classes} == {"chat": None, "batch": 4}
    assert policy.classes[0].tpot_ms == 30


def test_mode_off_leaves_engines_as_declared_and_forgets_nothing() -> None:
    plan = decide(tuned("Off", tokenBudget=1024), NOW)
    assert plan.published is not None
    policy = plan.published.policy
    assert (policy.theta_ppm, policy.token_budget, policy.max_batch_size) == (None, 1024, None)
    assert all(each.max_running is None for each in policy.classes)
    assert plan.tuning is not None
    assert plan.tuning.point == POINT


def test_what_was_tuned_never_exceeds_what_the_user_allows() -> None:
    plan = decide(tuned(tokenBudget=128, maxBatchSize=2), NOW)
    assert plan.published is not None
    assert (plan.published.policy.token_budget, plan.published.policy.max_batch_size) == (128, 2)


def test_a_new_operator_asks_the_pods_before_it_decides() -> None:
    unknown = replace(tuned(), tuning=None)
    plan = decide(unknown, NOW)
    assert (plan.published, plan.recipients, plan.tuning) == (None, (), None)
    held = HeldPoint(250_000, 256, 8, (("batch", 4),))
    older, newer = Stamp(1, 5, 9), Stamp(1, 6, 1)
    reports = {
        "uid-of-demo-1": SidecarReport(newer, held=held, asked=True),
        "uid-of-demo-2": SidecarReport(older, held=HeldPoint(token_budget=64), asked=True),
        "uid-of-demo-3": SidecarReport(asked=True),  # it did not answer
    }
    pods = tuple(ready_pod(f"demo-{n}") for n in (1, 2, 3))
    plan = decide(replace(unknown, pods=pods, reports=reports), NOW)
    assert plan.tuning is not None
    assert plan.tuning.point == POINT
    assert plan.published is not None
    assert plan.published.policy.stamp == Stamp(1, OPERATOR.epoch, 1)
    assert len(plan.recipients) == 3


def test_a_value_at_the_users_own_is_not_taken_for_tuned() -> None:
    held = HeldPoint(token_budget=2048, max_batch_size=64)
    report = SidecarReport(Stamp(1, 6, 1), held=held, asked=True)
    before = replace(tuned(), tuning=None, reports={ready_pod().uid: report})
    plan = decide(before, NOW)
    assert plan.tuning == Tuning()


def test_a_leader_that_returns_asks_again() -> None:
    before = settled(tuned())
    stamp = Stamp(1, OPERATOR.epoch + 1, 3)
    held = HeldPoint(theta_ppm=300_000, token_budget=512)
    report = SidecarReport(stamp, held=held, asked=True)
    returned = replace(OPERATOR, epoch=OPERATOR.epoch + 2)
    plan = decide(replace(before, operator=returned, reports={ready_pod().uid: report}), NOW)
    assert plan.tuning is not None
    assert plan.tuning.point == OperatingPoint(theta_ppm=300_000, token_budget=512)


def test_leaving_the_declared_value_and_coming_back_are_events() -> None:
    down = Change(What.TOKEN_BUDGET, None, 768, Reason.TPOT_MISSED, "TPOT of chat is 2.00")
    further = Change(What.TOKEN_BUDGET, 768, 600, Reason.TPOT_MISSED, "TPOT of chat is 1.20")
    theta = Change(What.THETA, None, 200_000, Reason.UTILISATION, "GPUs are 50 % busy")
    status = snapshot().service.status
    retuned = Retuned(Tuning(), (down, further, theta))
    notices = decide_notices(status, status, {}, retuned)
    assert [(each.reason, each.message) for each in notices] == [
        ("Retuned", "Token budget as declared -> 768: TPOT of chat is 2.00")
    ]


def test_a_target_out_of_reach_is_a_warning() -> None:
    status = snapshot().service.status
    retuned = Retuned(Tuning(), (), out_of_reach="TPOT of class chat is 3.00 of its target")
    (notice,) = decide_notices(status, status, {}, retuned)
    assert notice.warning
    assert (notice.reason, notice.message) == ("TargetOutOfReach", retuned.out_of_reach)
