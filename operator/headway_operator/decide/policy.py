"""Which policy is in force and which pods still have to be told."""

from __future__ import annotations

from dataclasses import replace

from headway_operator.api import InferenceServiceSpec
from headway_operator.decide.retune import limit_background
from headway_operator.memory.published import PublishedPolicy
from headway_operator.memory.tuning import OperatingPoint
from headway_operator.observe.instant import Instant
from headway_operator.observe.records import PodRecord
from headway_operator.render.baseline import policy_from_spec
from headway_operator.snapshot import Snapshot
from headway_runtime.policy import Mode, Policy, Stamp

ACKNOWLEDGED_WITHIN_SECONDS = 15
"""Pushes are retried every 5 s; three that fail are more than bad luck."""

_FIRST_COUNTER = 1


def decide_policy(
    snapshot: Snapshot, spec: InferenceServiceSpec, point: OperatingPoint, now: Instant
) -> PublishedPolicy:
    """The policy in force: the one already published unless its content or its term changed."""
    published = snapshot.published
    term = (snapshot.service.generation, snapshot.operator.epoch)
    uid = snapshot.service.uid
    if published is None or _term(published.policy) != term:
        stamp = Stamp(*term, counter=_FIRST_COUNTER)
    else:
        wanted = tuned_policy(spec, uid, published.policy.stamp, point)
        if wanted == published.policy:
            return published
        stamp = replace(wanted.stamp, counter=wanted.stamp.counter + 1)
    policy = tuned_policy(spec, uid, stamp, point)
    return PublishedPolicy(policy, now.unix, _still_due(published, now))


def tuned_policy(
    spec: InferenceServiceSpec, service_uid: str, stamp: Stamp, point: OperatingPoint
) -> Policy:
    """The policy that follows from the spec, with what was retuned below it."""
    policy = policy_from_spec(spec, service_uid, stamp)
    if policy.mode is Mode.OFF:
        return policy
    return replace(
        policy,
        theta_ppm=point.theta_ppm,
        token_budget=point.token_budget or policy.token_budget,
        max_batch_size=point.max_batch_size or policy.max_batch_size,
        classes=limit_background(policy.classes, point.background_limit),
    )


def _still_due(published: PublishedPolicy | None, now: Instant) -> tuple[tuple[Stamp, float], ...]:
    """The policies that pods may still have time for, and the newest for which they had."""
    if published is None:
        return ()
    decided = (*published.before, (published.policy.stamp, published.since))
    limit = now.unix - ACKNOWLEDGED_WITHIN_SECONDS
    last_due = max((since for _, since in decided if since <= limit), default=0.0)
    return tuple(each for each in decided if each[1] >= last_due)


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


def _term(policy: Policy) -> tuple[int, int]:
    return policy.stamp.generation, policy.stamp.epoch
