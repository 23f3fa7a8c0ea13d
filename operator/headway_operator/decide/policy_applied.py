"""The condition PolicyApplied."""

from __future__ import annotations

from headway_operator.api.labels import SIDECAR
from headway_operator.decide.facts import Facts
from headway_operator.decide.obstacles import FUNDAMENTAL
from headway_operator.decide.policy import ACKNOWLEDGED_WITHIN_SECONDS, holds
from headway_operator.decide.verdict import Verdict, first
from headway_operator.memory.published import PublishedPolicy
from headway_operator.observe.problems import shown
from headway_operator.observe.records import PodRecord
from headway_operator.observe.sidecars import Outcome, SidecarReport
from headway_runtime.policy import Stamp

_PODS_NAMED = 3


def policy_applied(facts: Facts) -> Verdict | None:
    """Whether every running pod has acknowledged the policy and acts on it.

    None while it is too early to say: the condition then stays as it is.
    """
    if not unacknowledged(facts) or overdue_pods(facts) or facts.spec is None:
        return first((*FUNDAMENTAL, _not_acknowledged, _nobody, _stock, _acknowledged), facts)
    return None


def unacknowledged(facts: Facts) -> list[PodRecord]:
    """Pods that should hold the policy and do not."""
    if facts.published is None:
        return []
    stamp = facts.published.policy.stamp
    return [pod for pod in holders(facts) if not holds(facts.snapshot, pod, stamp)]


def overdue_pods(facts: Facts) -> list[PodRecord]:
    """Those of them that had their time: since the policy was decided and their sidecar began."""
    limit = facts.now.unix - ACKNOWLEDGED_WITHIN_SECONDS
    due = _due(facts.published, limit)
    if due is None or facts.published is None:
        return []
    newest = facts.published.policy.stamp
    return [
        pod
        for pod in unacknowledged(facts)
        if _sidecar_since(pod) <= limit
        # One that refuses the newest policy has until that one is due: pushes are retried.
        and (due == newest or _is_behind(facts.snapshot.reports.get(pod.uid), due))
    ]


def _due(published: PublishedPolicy | None, limit: float) -> Stamp | None:
    """The newest policy that was decided before the limit.

    Policies may follow each other faster than one can tell a pod in trouble from one that is just
    being pushed to.
    """
    if published is None:
        return None
    decided = (*published.before, (published.policy.stamp, published.since))
    return max((stamp for stamp, since in decided if since <= limit), default=None)


def _is_behind(report: SidecarReport | None, due: Stamp) -> bool:
    return report is None or report.stamp is None or report.stamp < due


def holders(facts: Facts) -> list[PodRecord]:
    """Pods that should hold the policy."""
    return [pod for pod in facts.snapshot.pods if pod.takes_policies]


def _sidecar_since(pod: PodRecord) -> float:
    return pod.containers[SIDECAR].running_since or 0.0


def _not_acknowledged(facts: Facts) -> Verdict | None:
    late = overdue_pods(facts)
    if not late or facts.published is None:
        return None
    names = ", ".join(shown("name", pod.name) for pod in late[:_PODS_NAMED])
    more = f" and {len(late) - _PODS_NAMED} more" if len(late) > _PODS_NAMED else ""
    report = facts.snapshot.reports.get(late[0].uid)
    refusal = f" ({report.refusal})" if report and report.refusal else ""
    text = (
        f"Not acknowledged within {ACKNOWLEDGED_WITHIN_SECONDS} s by {names}{more}{refusal}; "
        "they keep their last policy"
    )
    if report and report.refusal is Outcome.BAD_FORMAT:
        text += _remedy_for_older_pods(facts)
    return Verdict("False", "NotAcknowledged", text, alarming=True)


def _remedy_for_older_pods(facts: Facts) -> str:
    """Pods keep their release over an upgrade, and it may not know what the spec now says."""
    image = shown("image", facts.snapshot.operator.runtime_image)
    return (
        ". Their release cannot read what the spec says: "
        f"set runtime.image to {image}, which replaces them"
    )


def _nobody(facts: Facts) -> Verdict | None:
    if holders(facts):
        return None
    return Verdict("Unknown", "NoPods", "No pod is there to take the policy")


def _stock(facts: Facts) -> Verdict | None:
    reports = (facts.snapshot.reports.get(pod.uid) for pod in holders(facts))
    reason = next((each.stock_reason for each in reports if each and each.stock_reason), None)
    if reason is None:
        return None
    text = (
        f"The engine schedules by itself, because Headway cannot drive it: {shown('word', reason)}"
    )
    return Verdict("False", "EngineRunsStock", text, alarming=True)


def _acknowledged(facts: Facts) -> Verdict:
    generation = facts.snapshot.service.generation
    text = f"Every pod acknowledged the policy of generation {generation}"
    return Verdict("True", "PolicyApplied", text)
