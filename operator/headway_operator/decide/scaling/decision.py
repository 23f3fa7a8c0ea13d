"""How many pods a service gets: by the spec or by load, and none while nobody uses it."""

from __future__ import annotations

from headway_operator.api import InferenceServiceSpec
from headway_operator.decide.scaling.scaled import Scaled
from headway_operator.decide.scaling.scaling import scale_by_load
from headway_operator.decide.scaling.zero import asleep, awake, is_asleep
from headway_operator.observe.instant import Instant
from headway_operator.snapshot import Snapshot


def decide_scaling(snapshot: Snapshot, spec: InferenceServiceSpec, now: Instant) -> Scaled:
    """How many pods a service gets, and why."""
    if not spec.scaling.may_be_zero:
        return _always(snapshot, spec, now)
    if is_asleep(snapshot, spec):
        return asleep(snapshot, spec, now)
    return awake(snapshot, spec, _always(snapshot, spec, now), now)


def _always(snapshot: Snapshot, spec: InferenceServiceSpec, now: Instant) -> Scaled:
    """As if it had to have pods."""
    if spec.scaling.mode == "External":
        return Scaled(spec.replicas)
    return scale_by_load(snapshot, spec, now)
