"""To zero and back.

metrics and activators -> since when nobody used the service -> the Service points to the activator
-> still nobody -> no pods -> a request comes to the activator -> one pod

Without pods and without an activator that tells who asks, nobody could have one started: after a
while one is started in any case. That many activators are there and do not answer says something of
the operator or its network, not of each service: then none is started for it.

Before pods go, requests have come to the activator for a while: what is on its way to an engine
then still meets one, and the engine's metrics would tell of it. What is not known removes nothing.
"""

from __future__ import annotations

from dataclasses import replace

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.labels import ACTIVATOR
from headway_operator.decide.pods import points_to, ready_pods
from headway_operator.decide.scaling.idle import Idle, watch_idle
from headway_operator.decide.scaling.scaled import Scaled
from headway_operator.memory.idleness import Idleness
from headway_operator.memory.scaling import Scaling
from headway_operator.observe.instant import Instant
from headway_operator.snapshot import Snapshot

HANDOVER_SECONDS = 10.0
"""From when the Service points to the activator until pods go: every node has heard of it by then,
and the metrics that are looked at are of later."""

SETTLED_SECONDS = 5.0
"""The metrics must be from so long after the Service was turned."""

RECENT_SECONDS = 15.0
"""Whoever asked so long ago, and was not held or gave up, will ask again."""

UNATTENDED_SECONDS = 120.0
"""How long a service may have neither pods nor an activator that tells: longer than it takes to
replace an activator's pods, or an operator."""

MOST_UNREACHED = 5
"""So many services, each with activators that are ready and do not answer the operator, get a pod
when that lasts. Where there are more, it is the operator that is cut off: a partition of the
network must not start a pod for everything that sleeps."""

NO_ACTIVATOR = "NoActivator"


def is_cut_off(snapshot: Snapshot) -> bool:
    """Whether that the activator is not heard says nothing of this service."""
    return snapshot.operator.unreached > MOST_UNREACHED and ready_pods(snapshot.activators) > 0


def is_asleep(snapshot: Snapshot, spec: InferenceServiceSpec) -> bool:
    """Whether the service has no pods, by its Deployment: that is remembered whatever restarts."""
    if snapshot.rollout is not None:
        return snapshot.rollout.wanted == 0
    # A new one starts a pod, which shows that it can, unless it is told otherwise.
    return spec.scaling.mode == "External" and spec.replicas == 0


def asleep(snapshot: Snapshot, spec: InferenceServiceSpec, now: Instant) -> Scaled:
    """For a service without pods: one if there is a request, or as many as the spec says."""
    epoch = snapshot.operator.epoch
    unattended_since = _unattended_since(snapshot, now)
    idleness = Idleness(epoch, since=now.unix, unattended_since=unattended_since)
    memory = _one_pod(spec, epoch, now)
    if spec.scaling.mode == "External" and spec.replicas > 0:
        return Scaled(spec.replicas, idleness=idleness)
    wanted = 1 if memory is not None else None
    why = _wanted_by(snapshot, now)
    if why:
        return Scaled(1, memory, 0, why, wanted, "Woken", idleness)
    if unattended_since is not None and now.unix - unattended_since >= UNATTENDED_SECONDS:
        why = f"No activator has been there to tell of requests for {UNATTENDED_SECONDS:.0f} s"
        return Scaled(1, memory, 0, why, wanted, NO_ACTIVATOR, idleness)
    return Scaled(0, memory, wanted=0, idleness=idleness, leaving=True)


def awake(snapshot: Snapshot, spec: InferenceServiceSpec, scaled: Scaled, now: Instant) -> Scaled:
    """For a service with pods: none if nobody uses it, else what was decided, but at least one.

    Args:
        snapshot: the service as it is.
        spec: its spec.
        scaled: what was decided by load, or by the spec.
        now: the moment.
    """
    idle = watch_idle(snapshot, now, spec.engine.startup_timeout_seconds)
    is_asked_for = spec.scaling.mode == "External" and spec.replicas > 0
    scaled = replace(scaled, replicas=max(1, scaled.replicas))
    if is_asked_for or not _may_leave(snapshot, spec, idle, now):
        return replace(scaled, idleness=replace(idle.memory, handed_over=None))
    memory = replace(idle.memory, handed_over=_handed_over(snapshot, now))
    if not _has_left(idle, memory, now):
        return replace(scaled, idleness=memory, leaving=True)
    in_vain = "" if ready_pods(snapshot.pods) else ", and no pod got ready"
    seconds = now.unix - memory.since
    before = snapshot.rollout.wanted if snapshot.rollout else scaled.replicas
    return Scaled(
        0,
        _one_pod(spec, snapshot.operator.epoch, now),
        before,
        f"No request for {seconds:.0f} s{in_vain}",
        0,
        "ScaledToZero",
        Idleness(memory.epoch, memory.since),
        leaving=True,
    )


def _may_leave(snapshot: Snapshot, spec: InferenceServiceSpec, idle: Idle, now: Instant) -> bool:
    """Whether nobody has used the service for long enough, and somebody is there to answer.

    One that was found to be unused stays so while metrics are missing: its Service does not turn to
    and fro. Its pods stay too.
    """
    unused = now.unix - idle.memory.since >= spec.scaling.idle_seconds
    known = idle.is_known or idle.memory.handed_over is not None
    return unused and known and ready_pods(snapshot.activators) > 0


def _unattended_since(snapshot: Snapshot, now: Instant) -> float | None:
    """Since when no activator has been ready and told the operator who asks.

    No time passes while the operator is cut off, so that what comes back last is not too late.
    """
    ready = (each for each in snapshot.activators if each.ready and not each.deleting)
    if any(each.uid in snapshot.activator_reports for each in ready):
        return None
    before = snapshot.idleness
    known = before is not None and before.epoch == snapshot.operator.epoch
    since = before.unattended_since if before is not None and known else None
    if is_cut_off(snapshot):
        return now.unix
    return now.unix if since is None else since


def _handed_over(snapshot: Snapshot, now: Instant) -> float | None:
    if points_to(snapshot) != ACTIVATOR:
        return None
    before = snapshot.idleness.handed_over if snapshot.idleness else None
    return now.unix if before is None else before


def _has_left(idle: Idle, memory: Idleness, now: Instant) -> bool:
    if not idle.is_known or memory.handed_over is None:
        return False
    looked_at = idle.oldest_sample >= memory.handed_over + SETTLED_SECONDS
    return looked_at and now.unix - memory.handed_over >= HANDOVER_SECONDS


def _wanted_by(snapshot: Snapshot, now: Instant) -> str:
    """Who asks for the service, in a few words; empty when nobody does."""
    held = sum(each.held for each in snapshot.activator_reports.values())
    if held:
        return f"{held} {'request waits' if held == 1 else 'requests wait'} for an engine"
    times = [
        each.asked_at for each in snapshot.activator_reports.values() if each.asked_at is not None
    ]
    last = max(times, default=None)
    if last is None or now.unix - last > RECENT_SECONDS:
        return ""
    return f"A request came {max(0.0, now.unix - last):.0f} s ago"


def _one_pod(spec: InferenceServiceSpec, epoch: int, now: Instant) -> Scaling | None:
    """What load decides from when there are pods again."""
    return (
        None
        if spec.scaling.mode == "External"
        else Scaling(1, claimed=1, since=now.unix, epoch=epoch)
    )
