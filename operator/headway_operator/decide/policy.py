"""Which policy is in force and which pods still have to be told."""

from __future__ import annotations

from dataclasses import replace

from headway_operator.api import InferenceServiceSpec
from headway_operator.observe.instant import Instant
from headway_operator.observe.records import PodRecord
from headway_operator.observe.snapshot import PublishedPolicy, Snapshot
from headway_operator.render.baseline import policy_from_spec
from headway_runtime.policy import Policy, Stamp

_FIRST_COUNTER = 1


def decide_policy(snapshot: Snapshot, spec: InferenceServiceSpec, now: Instant) -> PublishedPolicy:
    """The policy in force: the one already published unless its content or its term changed."""
    published = snapshot.published
    term = (snapshot.service.generation, snapshot.operator.epoch)
    if published is None or _term(published.policy) != term:
        stamp = Stamp(*term, counter=_FIRST_COUNTER)
        return PublishedPolicy(_policy(snapshot, spec, stamp), now.unix)
    wanted = _policy(snapshot, spec, published.policy.stamp)
    if wanted == published.policy:
        return published
    stamp = replace(wanted.stamp, counter=wanted.stamp.counter + 1)
    return PublishedPolicy(replace(wanted, stamp=stamp), now.unix)


def recipients(snapshot: Snapshot, published: PublishedPolicy) -> tuple[PodRecord, ...]:
    """Pods that can take a policy and do not hold this one."""
    return tuple(
        pod
        for pod in snapshot.pods
        if pod.takes_policies and not holds(snapshot, pod, published.policy.stamp)
    )


def holds(snapshot: Snapshot, pod: PodRecord, stamp: Stamp) -> bool:
    """Whether a pod has acknowledged the policy of this stamp."""
    report = snapshot.reports.get(pod.uid)
    return report is not None and report.stamp == stamp and report.refusal is None


def _policy(snapshot: Snapshot, spec: InferenceServiceSpec, stamp: Stamp) -> Policy:
    return policy_from_spec(spec, snapshot.service.uid, stamp)


def _term(policy: Policy) -> tuple[int, int]:
    return policy.stamp.generation, policy.stamp.epoch
