"""Since when nobody has used a service. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headway_operator.observe.engine_metrics.sample import EngineSample
from headway_operator.observe.idleness import Idleness
from headway_operator.observe.instant import Instant
from headway_operator.observe.records import PodRecord
from headway_operator.observe.snapshot import Snapshot

_ENDED = frozenset({"Failed", "Succeeded"})


@dataclass(frozen=True)
class Idle:
    """What a look came to.

    Attributes:
        memory: since when nobody has used it, as far as that is known.
        is_known: every pod has told, and every activator.
        oldest_sample: when the oldest of the newest samples was taken, as Unix time in seconds.
    """

    memory: Idleness
    is_known: bool
    oldest_sample: float


def watch_idle(snapshot: Snapshot, now: Instant) -> Idle:
    """Look at pods and activators."""
    epoch, before = snapshot.operator.epoch, snapshot.idleness
    if before is None or before.epoch != epoch:
        before = Idleness(epoch, since=now.unix)
    pods = [each for each in snapshot.pods if not each.deleting and each.phase not in _ENDED]
    samples = _samples(snapshot, pods)
    used = (
        # One that starts was asked for, and has not served anybody yet.
        any(not pod.ready for pod in pods)
        or any(_is_used(sample, before.tokens.get(uid)) for uid, sample in samples.items())
        or any(each.held or each.passing for each in snapshot.demands.values())
    )
    asked = [each.asked_at for each in snapshot.demands.values() if each.asked_at is not None]
    since = now.unix if used else min(now.unix, max((before.since, *asked)))
    tokens = {uid: sample.scheduled_tokens_total for uid, sample in samples.items()}
    kept = {uid: count for uid, count in before.tokens.items() if uid in {p.uid for p in pods}}
    return Idle(
        memory=Idleness(epoch, since, {**kept, **tokens}, before.handed_over),
        is_known=bool(pods) and _all_tell(snapshot, pods, samples),
        oldest_sample=min((each.at for each in samples.values()), default=0.0),
    )


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
    """Whether what is known is all there is."""
    metrics = snapshot.metrics
    if metrics.source is None or metrics.missing:
        return False
    silent = [
        each for each in snapshot.activators if each.ready and each.uid not in snapshot.demands
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
