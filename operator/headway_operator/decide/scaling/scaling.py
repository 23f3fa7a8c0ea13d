"""From what engines are asked for to the number of pods.

metrics -> offered load -> forecast -> pods needed now and in the last minutes -> replicas

More pods come at once when they are needed, and go when they were not needed for a while. What is
not known removes nothing: without metrics, or with those of some pods missing, pods stay.
"""

from __future__ import annotations

from dataclasses import replace

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.scaling import Scaling as ScalingSpec
from headway_operator.decide.scaling.forecast import forecast, seen
from headway_operator.decide.scaling.missed import (
    LEAST_FILLED,
    TICKS_TO_ADD,
    TICKS_TO_SETTLE,
    corrected,
    faded,
    measured_load,
    misses,
    most_miss,
    ticks_missed,
)
from headway_operator.decide.scaling.offered_load import OfferedLoad, read_offered_load
from headway_operator.decide.scaling.outlook import Outlook
from headway_operator.decide.scaling.quota import within_quota
from headway_operator.decide.scaling.replicas import (
    CAUTION,
    TICKS_TO_RISE,
    least_at_once,
    most_at_once,
    most_needed,
    rising,
)
from headway_operator.decide.scaling.scaled import Scaled
from headway_operator.decide.tuning import targets_of
from headway_operator.memory.scaling import LoadPoint, Needed, Scaling
from headway_operator.observe.instant import Instant
from headway_operator.snapshot import Snapshot


def scale_by_load(snapshot: Snapshot, spec: InferenceServiceSpec, now: Instant) -> Scaled:
    """How many pods a service gets, and why: at least one."""
    found = _needed(snapshot, spec, now)
    return _noting_change(within_quota(found, snapshot, spec), now)


def _needed(snapshot: Snapshot, spec: InferenceServiceSpec, now: Instant) -> Scaled:
    """How many pods a service needs, within the user's bounds."""
    memory = remembered(snapshot, spec, now)
    load = _news(snapshot, memory)
    if load is None:
        return _within_bounds(spec.scaling, memory, memory, None, "")
    loads = seen(memory.loads, LoadPoint(load.at, load.engines))
    known = replace(
        memory,
        loads=loads,
        correction=faded(memory.correction),
        collection=snapshot.metrics.collection,
    )
    outlook = _outlook(known, load, spec.scaling)
    missed = ticks_missed(memory.missed, holds=_misses(snapshot, spec, known, outlook))
    adds = missed >= TICKS_TO_ADD
    if adds:
        missed = -TICKS_TO_SETTLE
        known = replace(known, correction=_learnt(snapshot, spec, known, outlook))
        outlook = _outlook(known, load, spec.scaling)
    known = replace(
        known,
        missed=missed,
        needed=_needed_lately(known, outlook, spec.scaling, now),
        rising=rising(memory.rising, outlook.pods(), memory.replicas),
    )
    wanted, why = _wanted(known, outlook, spec.scaling, now, adds=adds)
    return _within_bounds(spec.scaling, memory, known, wanted, why)


def _noting_change(scaled: Scaled, now: Instant) -> Scaled:
    """The same, and what a change begins anew: the count of ticks, and the time since a removal."""
    memory = scaled.memory
    if memory is None or scaled.before is None:
        return scaled
    # Of what is needed and was not granted the count goes on.
    memory = memory if scaled.limited else replace(memory, rising=0)
    if scaled.before > scaled.replicas:
        memory = replace(memory, removed_at=now.unix)
    return replace(scaled, memory=memory)


def _outlook(known: Scaling, load: OfferedLoad, scaling: ScalingSpec) -> Outlook:
    ahead = forecast(known.loads, scaling.forecast_seconds)
    return Outlook(load, ahead, scaling.target_load_percent / 100, known.correction)


def _wanted(
    known: Scaling, outlook: Outlook, scaling: ScalingSpec, now: Instant, *, adds: bool
) -> tuple[int, str]:
    """Pods without the user's bounds, and why if they are not those there are."""
    replicas = known.replicas
    if adds:
        return replicas + 1, f"Objectives are missed although it should do: {outlook}"
    if known.rising >= TICKS_TO_RISE:
        return min(outlook.pods(), most_at_once(replicas)), f"More work: {outlook}"
    watched = known.since <= now.unix - scaling.stabilization_seconds
    # One removal after the other: a pod that is missed then takes as long to come back.
    watched = watched and known.removed_at <= now.unix - scaling.forecast_seconds
    fewer = max(most_needed(known.needed), outlook.pods(CAUTION), least_at_once(replicas))
    if watched and outlook.load.is_complete and known.missed == 0 and fewer < replicas:
        return fewer, f"No more needed for {scaling.stabilization_seconds} s: {outlook}"
    return replicas, ""


def _needed_lately(
    memory: Scaling, outlook: Outlook, scaling: ScalingSpec, now: Instant
) -> tuple[Needed, ...]:
    since = now.unix - scaling.stabilization_seconds
    recent = (each for each in memory.needed if each.at > since)
    # What was forecast and did not come was not needed.
    return (*recent, Needed(now.unix, outlook.pods_now(CAUTION)))


def _misses(
    snapshot: Snapshot, spec: InferenceServiceSpec, memory: Scaling, outlook: Outlook
) -> bool:
    """Whether objectives are missed by engines that have work, are all there, and should do."""
    if outlook.pods() > memory.replicas:
        return False
    ready = sum(pod.ready and not pod.deleting for pod in snapshot.pods)
    is_filled = measured_load(memory.loads) >= LEAST_FILLED * outlook.room * memory.replicas
    all_there = ready >= memory.replicas
    return all_there and is_filled and misses(snapshot.metrics, targets_of(spec))


def _learnt(
    snapshot: Snapshot, spec: InferenceServiceSpec, memory: Scaling, outlook: Outlook
) -> float:
    """The correction, once objectives were missed."""
    if not most_miss(snapshot.metrics, targets_of(spec)):
        return memory.correction
    load = measured_load(memory.loads)
    return corrected(memory.correction, load, outlook.room, memory.replicas)


def remembered(snapshot: Snapshot, spec: InferenceServiceSpec, now: Instant) -> Scaling:
    """What is remembered in this term; at its beginning the cluster says what was decided."""
    memory, epoch = snapshot.scaling, snapshot.operator.epoch
    if memory is not None and memory.epoch == epoch:
        return memory
    replicas = _decided_before(snapshot) or spec.scaling.min_replicas
    if spec.scaling.may_be_zero:
        # That there are none, and when there are some again, is not decided by load.
        replicas = max(1, replicas)
    return Scaling(replicas, since=now.unix, epoch=epoch)


def _decided_before(snapshot: Snapshot) -> int:
    """Pods that an operator before this one decided on; 0 where nothing says.

    The Deployment's, but while some of them are given up it has fewer.
    """
    steps = snapshot.service.status.degradation
    wanted = next((each.wanted_replicas for each in steps if each.wanted_replicas), None)
    return wanted or (snapshot.rollout.wanted if snapshot.rollout else 0)


def _news(snapshot: Snapshot, memory: Scaling) -> OfferedLoad | None:
    """What engines are asked for, if it was not decided about before."""
    metrics = snapshot.metrics
    if metrics.collection <= memory.collection or metrics.source is None or metrics.missing:
        return None
    # One that drains is ready still, and is asked nothing any more.
    answering = [pod.uid for pod in snapshot.pods if pod.ready and not pod.deleting]
    return read_offered_load(metrics, answering)


def _within_bounds(
    scaling: ScalingSpec, before: Scaling, known: Scaling, wanted: int | None, why: str
) -> Scaled:
    """What is wanted, as far as the user allows it."""
    least, most = max(1, scaling.min_replicas), scaling.max_replicas
    replicas = min(max(known.replicas if wanted is None else wanted, least), most)
    # What was wanted and not granted is wanted for as long as a pod would be kept for it.
    claimed = max(replicas, min(known.claimed, most_needed(known.needed), most))
    memory = replace(known, replicas=replicas, claimed=claimed)
    if replicas == before.replicas:
        return Scaled(replicas, memory, wanted=wanted)
    why = why or f"scaling allows {least} to {most}"
    return Scaled(replicas, memory, before.replicas, why, wanted)
