"""How a service's engines are tuned from now on: as before, unless metrics ask for a change."""

from __future__ import annotations

from headway_operator.api import InferenceServiceSpec
from headway_operator.decide.retune import Bounds, ClassTargets, Retuned, clamp, retune
from headway_operator.memory.tuning import OperatingPoint, Tuning
from headway_operator.observe.sidecars import HeldPoint, SidecarReport
from headway_operator.snapshot import Snapshot


def decide_tuning(snapshot: Snapshot, spec: InferenceServiceSpec) -> Retuned | None:
    """The tuning and what changed in it; None while it is being found out what pods run with."""
    tuning = snapshot.tuning
    if tuning is None or not _is_ours(snapshot):
        tuning = _adopted(snapshot, spec)
    if tuning is None:
        return None
    bounds = bounds_of(spec)
    clamped = clamp(tuning, bounds)
    if spec.scheduling.mode == "Off":
        return Retuned(clamped, ())
    return retune(clamped, snapshot.metrics, targets_of(spec), bounds)


def bounds_of(spec: InferenceServiceSpec) -> Bounds:
    """What the user allows at most."""
    scheduling, engine = spec.scheduling, spec.engine
    return Bounds(
        token_budget_cap=scheduling.token_budget or engine.max_num_batched_tokens,
        max_batch_cap=scheduling.max_batch_size or engine.max_num_seqs,
    )


def targets_of(spec: InferenceServiceSpec) -> tuple[ClassTargets, ...]:
    """What the user promises to each class."""
    return tuple(
        ClassTargets(
            each.name, each.ttft_milliseconds, each.tpot_milliseconds, each.deadline_seconds
        )
        for each in spec.classes
    )


def _is_ours(snapshot: Snapshot) -> bool:
    """Whether what is remembered was decided in this term: another leader may have come between."""
    published = snapshot.published
    return published is None or published.policy.stamp.epoch == snapshot.operator.epoch


def _adopted(snapshot: Snapshot, spec: InferenceServiceSpec) -> Tuning | None:
    """The tuning that an operator before this one left in the pods."""
    takers = (pod for pod in snapshot.pods if pod.takes_policies)
    reports = [snapshot.reports.get(pod.uid, SidecarReport()) for pod in takers]
    if any(not report.asked for report in reports):
        return None
    held = _newest(reports)
    if held is None:
        return Tuning()
    bounds = bounds_of(spec)
    limits = [limit for _, limit in held.class_limits]
    point = OperatingPoint(
        theta_ppm=held.theta_ppm,
        token_budget=_below(held.token_budget, bounds.token_budget_cap),
        max_batch_size=_below(held.max_batch_size, bounds.max_batch_cap),
        background_limit=min(limits, default=None),
    )
    return Tuning(point)


def _newest(reports: list[SidecarReport]) -> HeldPoint | None:
    told = [(each.stamp, each.held) for each in reports if each.stamp and each.held]
    return max(told, key=lambda pair: pair[0], default=(None, None))[1]


def _below(value: int | None, cap: int) -> int | None:
    return value if value is not None and value < cap else None
