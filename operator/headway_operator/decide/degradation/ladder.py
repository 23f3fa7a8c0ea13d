"""The steps there are: what each is good for, and which of those in force still hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.degradation import LadderStep, Step
from headway_operator.api.status import TakenStep
from headway_operator.memory.shortage import Shortage
from headway_operator.render.hashing import content_hash

DEFAULT_LADDER = tuple(
    LadderStep(step=step)
    for step in (Step.SHED_CLASSES, Step.LOWER_LIMITS, Step.SMALLER_MEMORY, Step.FEWER_REPLICAS)
)
"""A model to fall back to has to be named."""


@dataclass(frozen=True)
class Rule:
    """What a step is good for.

    Attributes:
        relieves: shortages that it helps with.
        after_seconds: how long one has lasted before it is taken, unless the user says otherwise.
        restarts: it makes other pods, and holds until what is declared is something else: trying
            again what has failed would cost those who serve a restart each time.
    """

    relieves: frozenset[Shortage]
    after_seconds: int
    restarts: bool = False


RULES = {
    Step.SHED_CLASSES: Rule(frozenset({Shortage.KV_CACHE}), 30),
    Step.LOWER_LIMITS: Rule(frozenset({Shortage.KV_CACHE}), 30),
    Step.SMALLER_MEMORY: Rule(frozenset({Shortage.MEMORY}), 0, restarts=True),
    Step.FEWER_REPLICAS: Rule(frozenset({Shortage.MEMORY, Shortage.ROOM}), 600),
    Step.FALLBACK_MODEL: Rule(frozenset({Shortage.MEMORY}), 0, restarts=True),
}


def ladder_of(spec: InferenceServiceSpec) -> tuple[LadderStep, ...]:
    """The ladder of a service, from the first step to the last."""
    return DEFAULT_LADDER if spec.degradation is None else spec.degradation


def after_seconds(step: LadderStep) -> int:
    """How long a shortage has lasted before a step is taken."""
    default = RULES[step.step].after_seconds
    return default if step.after_seconds is None else step.after_seconds


def declared_hash(spec: InferenceServiceSpec) -> str:
    """Hash of what pods are made from, and of what they would fall back to."""
    fallback = [each.model.to_kubernetes() for each in ladder_of(spec) if each.model]
    parts = [part.to_kubernetes() for part in (spec.model, spec.engine, spec.runtime)]
    return content_hash([*parts, fallback])


def standing_steps(taken: Iterable[TakenStep], spec: InferenceServiceSpec) -> tuple[TakenStep, ...]:
    """Those of the steps in force that still hold, in the order of the ladder.

    One that is not in the ladder any more does not, nor one that replaced pods for a spec that is
    now another.
    """
    wanted = {each.step: each for each in taken}
    if not wanted:
        return ()
    now = declared_hash(spec)
    found = (wanted[each.step] for each in ladder_of(spec) if each.step in wanted)
    return tuple(each for each in found if each.declared in (None, now))


def rung_of(taken: Iterable[TakenStep], spec: InferenceServiceSpec) -> int:
    """Place in the ladder of the last of some steps, from 1; 0 of none."""
    places = {each.step: place for place, each in enumerate(ladder_of(spec), start=1)}
    return max((places[each.step] for each in taken), default=0)
