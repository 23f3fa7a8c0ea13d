"""What people should hear of: transitions, never states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headway_operator.api import ConditionType, InferenceServiceStatus
from headway_operator.api.labels import ROUTER
from headway_operator.decide.plan import Application, Cause, Notice
from headway_operator.decide.retune import Retuned, What
from headway_operator.decide.scaling import NO_ACTIVATOR, Scaled
from headway_operator.decide.verdict import Verdict

_TOLD = (
    *(ConditionType.READY, ConditionType.POLICY_APPLIED, ConditionType.METRICS_AVAILABLE),
    *(ConditionType.SCALING_LIMITED, ConditionType.ROUTER_READY, ConditionType.ACTIVATOR_READY),
)
"""The other conditions say the same in other words."""

_RETUNED = {
    What.TOKEN_BUDGET: "Token budget",
    What.MAX_BATCH: "Batch size",
    What.CLASS_LIMIT: "Limit of the classes without targets for tokens",
}
"""The threshold follows utilisation all the time and is a metric only."""

_WITHOUT_PROMETHEUS = ("DirectScrape", "NoMetrics", "MetricsMissing")


def decide_notices(
    old: InferenceServiceStatus,
    new: InferenceServiceStatus,
    found: Mapping[ConditionType, Verdict],
    retuned: Retuned | None,
) -> tuple[Notice, ...]:
    """Events for what changed between two statuses, and for what is retuned."""
    told = (
        *(_retuned(retuned), _transitions(old, found), _stalled(old, found)),
        _policy(old, new),
    )
    return tuple(notice for notices in told for notice in notices)


def applied_notices(accepted: Sequence[Application]) -> Iterator[Notice]:
    """Events for objects that the API server took: one that it refuses is tried every minute."""
    for application in accepted:
        if application.cause is Cause.TAKEN:
            text = f"{application.slot}: somebody else changed {application.taken_field}"
            yield Notice(warning=True, reason="Restored", message=f"{text}; restored")
    kinds = ", ".join(each.slot for each in accepted if each.cause is not Cause.TAKEN)
    if kinds:
        yield Notice(warning=False, reason="Applied", message=f"Applied {kinds}")


def decide_scaling_notices(scaled: Scaled) -> Iterator[Notice]:
    """An event for pods that are added or removed."""
    if scaled.before is None:
        return
    grows = scaled.replicas > scaled.before
    text = f"Replicas {scaled.before} -> {scaled.replicas}: {scaled.message}"
    reason = scaled.reason or ("ScaledUp" if grows else "ScaledDown")
    yield Notice(warning=reason == NO_ACTIVATOR, reason=reason, message=text)


def decide_router_notices(turned_to: str) -> Iterator[Notice]:
    """An event for a Service that points elsewhere from now on."""
    if turned_to == ROUTER:
        text = "Requests go through the router from now on"
        yield Notice(warning=False, reason="RouterInUse", message=text)
    elif turned_to:
        text = "Requests go to the engines directly from now on"
        yield Notice(warning=False, reason="RouterBypassed", message=text)


def _retuned(retuned: Retuned | None) -> Iterator[Notice]:
    """Leaving the user's value and coming back to it; the steps between are metrics and logs."""
    if retuned is None:
        return
    if retuned.out_of_reach:
        yield Notice(warning=True, reason="TargetOutOfReach", message=retuned.out_of_reach)
    for change in retuned.changes:
        if change.what in _RETUNED and None in (change.before, change.after):
            values = " -> ".join(
                "as declared" if each is None else str(each)
                for each in (change.before, change.after)
            )
            text = f"{_RETUNED[change.what]} {values}: {change.message}"
            yield Notice(warning=False, reason="Retuned", message=text)


def _transitions(
    old: InferenceServiceStatus, found: Mapping[ConditionType, Verdict]
) -> Iterator[Notice]:
    before = {each.type: (each.status, each.reason) for each in old.conditions}
    for kind in _TOLD:
        verdict, (truth, reason) = found.get(kind), before.get(kind, ("", ""))
        if verdict is None or (verdict.truth, verdict.reason) == (truth, reason):
            continue
        turned = kind is ConditionType.READY and "True" in (truth, verdict.truth)
        # Back to Prometheus, or to any metrics at all.
        turned |= kind is ConditionType.METRICS_AVAILABLE and reason in _WITHOUT_PROMETHEUS
        if verdict.alarming or turned:
            yield Notice(verdict.alarming, verdict.reason, verdict.message)


def _stalled(
    old: InferenceServiceStatus, found: Mapping[ConditionType, Verdict]
) -> Iterator[Notice]:
    """That it will not heal by itself is news where what is wrong was told before."""
    before = {each.type: each for each in old.conditions}
    ready, stalled = found.get(ConditionType.READY), found.get(ConditionType.STALLED)
    was_ready, was_stalled = (
        before.get(kind) for kind in (ConditionType.READY, ConditionType.STALLED)
    )
    if ready is None or stalled is None or was_ready is None or stalled.truth != "True":
        return
    was_told = (was_ready.status, was_ready.reason) == (ready.truth, ready.reason)
    if was_told and (was_stalled is None or was_stalled.status != "True"):
        text = f"{stalled.reason}: {stalled.message}"
        yield Notice(warning=True, reason="Stalled", message=text)


def _policy(old: InferenceServiceStatus, new: InferenceServiceStatus) -> Iterator[Notice]:
    generation = new.policy_generation
    if generation is not None and generation != old.policy_generation:
        text = f"Every pod acknowledged the policy of generation {generation}"
        yield Notice(warning=False, reason="PolicyApplied", message=text)
