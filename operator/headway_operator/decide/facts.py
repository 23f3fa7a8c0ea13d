"""Facts about a service that its conditions are drawn from."""

from __future__ import annotations

from dataclasses import dataclass

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.labels import ENGINE
from headway_operator.api.status import TakenStep
from headway_operator.decide.late import late_pod
from headway_operator.decide.scaling import Scaled
from headway_operator.memory.published import PublishedPolicy
from headway_operator.memory.refusal import Refusal
from headway_operator.observe.classify import worst_problem
from headway_operator.observe.instant import Instant
from headway_operator.observe.problems import Problem
from headway_operator.observe.records import PodRecord, RolloutRecord
from headway_operator.snapshot import Snapshot

_ENDED = frozenset({"Failed", "Succeeded"})


@dataclass(frozen=True)
class Facts:
    """What the conditions are about.

    Attributes:
        snapshot: where the facts come from.
        spec: None where it cannot be read; most other facts mean nothing then.
        published: the policy in force.
        now: the moment they hold for.
        wanted: pods that are to run.
        least: how many of them there must be for the service to be ready.
        current: pods made from the current spec.
        outdated: pods made from an older spec that are still to be replaced.
        ready: how many of the current pods answer requests and have a policy.
        loaded: how many of the current pods have loaded the model.
        problem: what is wrong with the current pods, or with making them.
        overdue: the rollout made no progress for as long as an engine may take to start.
        late: a current pod that has a node and was not ready for so long.
        refusals: objects that are needed and that the API server does not take.
        scaled: how many pods were decided on; None where the spec cannot be read.
        degradation: steps of the ladder that are in force, in its order.
    """

    snapshot: Snapshot
    spec: InferenceServiceSpec | None
    published: PublishedPolicy | None
    now: Instant
    wanted: int = 0
    least: int = 0
    current: tuple[PodRecord, ...] = ()
    outdated: int = 0
    ready: int = 0
    loaded: int = 0
    problem: Problem | None = None
    overdue: bool = False
    late: PodRecord | None = None
    refusals: tuple[Refusal, ...] = ()
    scaled: Scaled | None = None
    degradation: tuple[TakenStep, ...] = ()


def gather_facts(
    snapshot: Snapshot,
    spec: InferenceServiceSpec,
    published: PublishedPolicy | None,
    template: str,
    now: Instant,
) -> Facts:
    """Count the pods; ``template`` is the hash that those of the current spec carry."""
    alive = [pod for pod in snapshot.pods if not pod.deleting and pod.phase not in _ENDED]
    current = tuple(pod for pod in alive if pod.template == template)
    ready = sum(pod.ready for pod in current)
    # A pod that was ready until now may be one too many; its troubles are then nobody's.
    problem = None
    if ready < spec.replicas:
        problem = worst_problem(snapshot.rollout, current, now.unix)
    return Facts(
        snapshot=snapshot,
        spec=spec,
        published=published,
        now=now,
        wanted=spec.replicas,
        least=_least(spec),
        current=current,
        outdated=len(alive) - len(current),
        ready=ready,
        loaded=sum(_has_loaded(pod) for pod in current),
        problem=problem,
        overdue=_overdue(snapshot.rollout),
        late=late_pod(current, spec.engine.startup_timeout_seconds, now),
    )


def _least(spec: InferenceServiceSpec) -> int:
    """Pods that are added for load are no condition for what is served already."""
    if spec.scaling.mode == "External":
        return spec.replicas
    return min(spec.replicas, max(1, spec.scaling.min_replicas))


def _has_loaded(pod: PodRecord) -> bool:
    """The engine answers its startup probe once the model is loaded."""
    engine = pod.containers.get(ENGINE)
    return engine is not None and engine.started


def _overdue(rollout: RolloutRecord | None) -> bool:
    if rollout is None or rollout.observed_generation < rollout.generation:
        return False
    progressing = rollout.conditions.get("Progressing")
    return progressing is not None and progressing.reason == "ProgressDeadlineExceeded"
