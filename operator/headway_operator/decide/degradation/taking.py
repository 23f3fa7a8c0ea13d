"""A step as it would be taken now, or moved further; None where it does not help, or no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.degradation import LadderStep, Step
from headway_operator.api.status import MOST_TRIES, TakenStep
from headway_operator.decide.degradation.ladder import declared_hash
from headway_operator.decide.degradation.memory_share import keeps_kv_on_host, smaller
from headway_operator.decide.degradation.reading import Reading, serving
from headway_operator.decide.facts import Facts
from headway_operator.decide.retune.bounds import LEAST_BATCH, LEAST_TOKEN_BUDGET
from headway_operator.decide.retune.signals import Signals
from headway_operator.memory.shortage import Shortage

MEMORY_PERCENTS = (80, 60, 40)
"""With less, a model that fits would hardly have room for requests."""

FEWER = 0.5
"""Share of what runs, and of a step, that LowerLimits leaves."""


@dataclass(frozen=True)
class Case:
    """What a step is to help with.

    Attributes:
        facts: what is known of the service.
        declared: its spec as it would be without any step.
        shortage: what is short.
        reading: how it is with that.
        signals: what pods say; None where they say nothing new.
    """

    facts: Facts
    declared: InferenceServiceSpec
    shortage: Shortage
    reading: Reading
    signals: Signals | None


def take(rung: LadderStep, before: TakenStep | None, case: Case) -> TakenStep | None:
    """The step as it would be from now on.

    Args:
        rung: what is declared of it.
        before: as it is in force; None where it is not.
        case: what it is to help with.
    """
    fields = _FIELDS[rung.step](before, case)
    if fields is None:
        return None
    reason, since = case.reading.reason, case.facts.now.text
    tries = min(before.tries + 1, MOST_TRIES) if before else 1
    return TakenStep(step=rung.step, reason=reason, since=since, tries=tries, **fields)


Fields = dict[str, Any]


def _shed_classes(before: TakenStep | None, case: Case) -> Fields | None:
    sheds = any(
        each.when_unmet == "Shed" and each.max_queued != 1 for each in case.declared.classes
    )
    return {} if before is None and sheds else None


def _lower_limits(before: TakenStep | None, case: Case) -> Fields | None:
    signals, spec = case.signals, case.declared
    if before is not None or signals is None:
        return None
    most = spec.scheduling.max_batch_size or spec.engine.max_num_seqs
    budget = spec.scheduling.token_budget or spec.engine.max_num_batched_tokens
    batch = max(LEAST_BATCH, int(FEWER * min(most, signals.running)))
    return {
        "max_batch_size": min(most, batch),
        "token_budget": min(budget, max(LEAST_TOKEN_BUDGET, int(FEWER * budget))),
    }


def _smaller_memory(before: TakenStep | None, case: Case) -> Fields | None:
    engine, reason = case.declared.engine, case.reading.reason
    if not case.reading.widespread:
        return None
    if reason == "KVCacheTooSmall":
        return _less_small(before, case) if before else None
    if not (reason == "EngineOutOfMemory" or (reason == "OOMKilled" and keeps_kv_on_host(engine))):
        return None
    percent = _share_of(before)
    least = before.least_memory_percent if before else None
    if before and before.retrying:
        # As before the try: what failed then is not gone through again.
        return _memory(case, percent, least) if percent >= (least or 0) else None
    present = smaller(engine, percent) if before else engine
    for less in MEMORY_PERCENTS:
        changed = smaller(engine, less) if (least or 0) <= less < percent else None
        if changed is not None and changed != present:
            return _memory(case, less, least)
    return None


def _less_small(before: TakenStep, case: Case) -> Fields | None:
    """One rung back, and never further down again: the model's KV cache needs so much."""
    if before.retrying:
        return None
    engine, percent = case.declared.engine, _share_of(before)
    present = smaller(engine, percent)
    for more in reversed(MEMORY_PERCENTS):
        if more > percent and smaller(engine, more) not in (None, present):
            return _memory(case, more, more)
    return {**_memory(case, percent, 100), "retrying": True}


def _share_of(before: TakenStep | None) -> int:
    return before.memory_percent if before and before.memory_percent else 100


def _memory(case: Case, percent: int, least: int | None) -> Fields:
    return {"memory_percent": percent, "least_memory_percent": least, **_replacing(case)}


def _fallback_model(before: TakenStep | None, case: Case) -> Fields | None:
    is_new = before is None or before.retrying
    return _replacing(case) if is_new and case.reading.widespread else None


def _replacing(case: Case) -> Fields:
    """What holds for every step that replaces pods."""
    return {"declared": declared_hash(case.declared), "in_place": serving(case.facts) == 0}


def _fewer_replicas(before: TakenStep | None, case: Case) -> Fields | None:
    """Those that serve, one fewer than wanted at most; a rollout gets the room of one pod so."""
    facts, wanted = case.facts, case.facts.wanted
    able = serving(facts) if case.shortage is Shortage.ROOM else facts.ready
    fewer = max(1, min(able, wanted - 1))
    if able == 0 or fewer >= wanted:
        return None
    fewer = min(fewer, before.replicas or fewer) if before else fewer
    return {"replicas": fewer, "wanted_replicas": case.declared.replicas}


_FIELDS: dict[Step, Callable[[TakenStep | None, Case], Fields | None]] = {
    Step.SHED_CLASSES: _shed_classes,
    Step.LOWER_LIMITS: _lower_limits,
    Step.SMALLER_MEMORY: _smaller_memory,
    Step.FEWER_REPLICAS: _fewer_replicas,
    Step.FALLBACK_MODEL: _fallback_model,
}
