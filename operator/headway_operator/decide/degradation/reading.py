"""What is short now, from pods and metrics."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from headway_operator.api.labels import ENGINE
from headway_operator.decide.degradation.ladder import RULES
from headway_operator.decide.facts import Facts
from headway_operator.decide.retune.signals import Signals
from headway_operator.decide.retune.situation import is_missed, kv_pressed, kv_room
from headway_operator.memory.shortage import Shortage
from headway_operator.observe.classify import sorted_by_name
from headway_operator.observe.container_problems import container_problem, fails_repeatedly
from headway_operator.observe.records import PodRecord

RESTARTS = 2
"""So many restarts of one engine that ended for want of memory are no chance any more."""

MEMORY_REASONS = frozenset({"OOMKilled", "EngineOutOfMemory", "KVCacheTooSmall"})
ROOM_REASONS = frozenset({"InsufficientGPU", "InsufficientResources", "QuotaExceeded"})
KV_REASON = "KVCacheFull"

ADDING_SECONDS = 60
"""A pod that load asks for is added within what is forecast, and so long."""


class State(Enum):
    """How it is with one shortage."""

    SHORT = auto()
    BETWEEN = auto()
    CLEAR = auto()
    UNKNOWN = auto()
    """Nothing new is known."""


@dataclass(frozen=True)
class Reading:
    """How it is with one shortage.

    Attributes:
        state: in short.
        reason: what is short, as one word; empty where nothing is.
        widespread: it concerns most of the current pods, so that others would fare no better.
        hope_seconds: it may end by itself for so long, so that steps wait for longer.
    """

    state: State
    reason: str = ""
    widespread: bool = False
    hope_seconds: int = 0


def read_shortages(facts: Facts, signals: Signals | None) -> dict[Shortage, Reading]:
    """How it is with every shortage.

    Args:
        facts: what is known of the service.
        signals: what its pods say; None where they say nothing new.
    """
    return {
        Shortage.KV_CACHE: _kv_cache(facts, signals),
        Shortage.MEMORY: _memory(facts),
        Shortage.ROOM: _room(facts),
    }


def serving(facts: Facts) -> int:
    """Pods that answer, of this or an older spec."""
    return sum(pod.ready and not pod.deleting for pod in facts.snapshot.pods)


def is_complete(facts: Facts) -> bool:
    """Whether all wanted pods are there, and none of an older spec."""
    return facts.ready >= facts.wanted and not facts.outdated


def _kv_cache(facts: Facts, signals: Signals | None) -> Reading:
    """Full blocks alone are no harm: it takes promises that are missed, or work that is lost."""
    if facts.spec is None or facts.spec.scheduling.mode != "Act":
        return Reading(State.CLEAR)
    if signals is None:
        return Reading(State.UNKNOWN if facts.snapshot.metrics.pods else State.BETWEEN)
    harms = is_missed(signals) or signals.thrashing
    if kv_pressed(signals) and signals.waiting > 0 and harms:
        if _may_scale(facts) and facts.ready < facts.wanted:
            return Reading(State.BETWEEN)
        return Reading(State.SHORT, KV_REASON, hope_seconds=_hope_seconds(facts))
    is_clear = signals.waiting == 0 and kv_room(signals)
    return Reading(State.CLEAR if is_clear else State.BETWEEN)


def _may_scale(facts: Facts) -> bool:
    """Whether the operator may add a pod instead, and nothing keeps it from coming."""
    spec, scaled = facts.spec, facts.scaled
    if spec is None or scaled is None or spec.scaling.mode != "Operator":
        return False
    # A step that restarts nothing stands because no pod came.
    gave_up = any(not RULES[each.step].restarts for each in facts.degradation)
    kept = facts.problem is not None or scaled.limited is not None or gave_up
    return not kept and scaled.replicas < spec.scaling.max_replicas


def _hope_seconds(facts: Facts) -> int:
    """For how long a pod may still be added where it may.

    It goes by what engines are asked for, and KV blocks can run out with engines that have time.
    """
    if facts.spec is None or not _may_scale(facts):
        return 0
    return facts.spec.scaling.forecast_seconds + ADDING_SECONDS


def _memory(facts: Facts) -> Reading:
    found = [reason for pod in sorted_by_name(facts.current) if (reason := _lacks_memory(pod))]
    if not found:
        return Reading(State.CLEAR if is_complete(facts) else State.BETWEEN)
    return Reading(State.SHORT, found[0], widespread=2 * len(found) > len(facts.current))


def _lacks_memory(pod: PodRecord) -> str:
    """Why the pod's engine failed again and again, if that was for want of memory."""
    engine = pod.containers.get(ENGINE)
    if engine is None or pod.ready or not fails_repeatedly(engine, RESTARTS):
        return ""
    problem = container_problem(engine)
    return problem.reason if problem and problem.reason in MEMORY_REASONS else ""


def _room(facts: Facts) -> Reading:
    problem = facts.problem
    if problem is not None and problem.reason in ROOM_REASONS:
        return Reading(State.SHORT, problem.reason)
    return Reading(State.CLEAR if is_complete(facts) else State.BETWEEN)
