"""Since when nobody has used a service. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headway_operator.api.labels import ENGINE
from headway_operator.decide.pods import has_no_node, ready_pods
from headway_operator.memory.idleness import Idleness
from headway_operator.observe.classify import worst_problem
from headway_operator.observe.engine_metrics.sample import EngineSample
from headway_operator.observe.instant import Instant
from headway_operator.observe.records import PodRecord
from headway_operator.snapshot import Snapshot

_ENDED = frozenset({"Failed", "Succeeded"})


@dataclass(frozen=True)
class Idle:
    """What a look came to.

    Attributes:
        memory: since when nobody has used it, as far as that is known.
        is_known: every pod whose engine can have work has told, and every activator.
        oldest_sample: when the oldest of the newest samples of those pods was taken, as Unix time
            in seconds; infinite where there is none of them.
    """

    memory: Idleness
    is_known: bool
    oldest_sample: float


def watch_idle(snapshot: Snapshot, now: Instant, startup_seconds: float) -> Idle:
    """Look at pods and activators.

    Args:
        snapshot: the service as it is.
        now: the moment.
        startup_seconds: how long a pod may take until it is ready.
    """
    epoch, before = snapshot.operator.epoch, snapshot.idleness
    if before is None or before.epoch != epoch:
        before = Idleness(epoch, since=now.unix)
    pods = [each for each in snapshot.pods if not each.deleting and each.phase not in _ENDED]
    working = [each for each in pods if _may_work(each)]
    samples = _samples(snapshot, pods)
    unready = {each.uid: before.unready.get(each.uid, now.unix) for each in pods if not each.ready}
    late = {uid for uid, since in unready.items() if now.unix - since >= startup_seconds}
    used = (
        # One that starts was asked for, and has not served anybody yet.
        any(_may_come(snapshot, each, now) for each in pods if each.uid not in late)
        or any(_is_used(sample, before.tokens.get(uid)) for uid, sample in samples.items())
        or any(each.held or each.passing for each in snapshot.activator_reports.values())
    )
    asked = [
        each.asked_at for each in snapshot.activator_reports.values() if each.asked_at is not None
    ]
    since = now.unix if used else min(now.unix, max((before.since, *asked)))
    tokens = {uid: sample.scheduled_tokens_total for uid, sample in samples.items()}
    kept = {uid: count for uid, count in before.tokens.items() if uid in _uids(pods)}
    return Idle(
        memory=Idleness(epoch, since, {**kept, **tokens}, before.handed_over, unready=unready),
        is_known=bool(pods) and _all_tell(snapshot, working, samples),
        oldest_sample=min(
            (samples[uid].at for uid in _uids(working) & samples.keys()), default=math.inf
        ),
    )


def _may_come(snapshot: Snapshot, pod: PodRecord, now: Instant) -> bool:
    """Whether a pod is not ready and may still get so by itself.

    One without a node, while another is ready: a rollout whose spare pod has no room, which the
    pods that go will leave.
    """
    if pod.ready or (has_no_node(pod) and ready_pods(snapshot.pods)):
        return False
    problem = worst_problem(None, (pod,), now.unix)
    return problem is None or not problem.stalls


def _may_work(pod: PodRecord) -> bool:
    """Whether a pod's engine can have work: not before it has loaded the model."""
    engine = pod.containers.get(ENGINE)
    return pod.ready or (engine is not None and engine.started)


def _uids(pods: Iterable[PodRecord]) -> set[str]:
    return {each.uid for each in pods}


def _samples(snapshot: Snapshot, pods: Iterable[PodRecord]) -> Mapping[str, EngineSample]:
    metrics = snapshot.metrics
    return {pod.uid: metrics.pods[pod.uid][-1] for pod in pods if pod.uid in metrics.pods}


def _is_used(sample: EngineSample, tokens_before: float | None) -> bool:
    """Requests that began and ended between two samples have left tokens."""
    worked = tokens_before is not None and sample.scheduled_tokens_total != tokens_before
    return worked or sample.running + sample.waiting > 0


def _all_tell(
    snapshot: Snapshot, pods: Iterable[PodRecord], samples: Mapping[str, EngineSample]
) -> bool:
    """Whether what is known of pods whose engines can have work is all there is."""
    metrics = snapshot.metrics
    if metrics.missing:
        return False
    silent = [
        each
        for each in snapshot.activators
        if each.ready and each.uid not in snapshot.activator_reports
    ]
    return not silent and all(_counts(snapshot, each, samples.get(each.uid)) for each in pods)


def _counts(snapshot: Snapshot, pod: PodRecord, sample: EngineSample | None) -> bool:
    """Whether a pod's engine counts what it does: one that runs stock does not.

    Without ceilings no engine process has told its sidecar anything, and all counts are 0.
    """
    report = snapshot.reports.get(pod.uid)
    if sample is None or report is None or not report.asked:
        return False
    return not report.stock_reason and sample.max_batch_ceiling > 0
