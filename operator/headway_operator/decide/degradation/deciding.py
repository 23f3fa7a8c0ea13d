"""One look at a service: at most one step is taken, moved or left."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.status import TakenStep
from headway_operator.decide.degradation.ladder import (
    RULES,
    after_seconds,
    ladder_of,
    rung_of,
    standing_steps,
)
from headway_operator.decide.degradation.leaving import left, moved_on
from headway_operator.decide.degradation.reading import Reading, State, read_shortages
from headway_operator.decide.degradation.taking import Case, take
from headway_operator.decide.degradation.timing import afresh, timed
from headway_operator.decide.degradation.wording import told
from headway_operator.decide.facts import Facts
from headway_operator.decide.plan import Notice
from headway_operator.decide.retune.signals import Signals
from headway_operator.observe.shortage import Shortage, ShortageWatch

RETRY_SECONDS = 60
"""How long a shortage lasts before a step that was being taken back is taken again."""


@dataclass(frozen=True)
class Degradation:
    """What a look came to.

    Attributes:
        steps: in force from the next look on, in the order of the ladder.
        watch: what is remembered of shortages.
        notices: what people should hear of.
        rung: place of the last of them in the ladder, from 1; 0 without any.
    """

    steps: tuple[TakenStep, ...]
    watch: ShortageWatch
    notices: tuple[Notice, ...] = ()
    rung: int = 0


@dataclass(frozen=True)
class _Look:
    facts: Facts
    declared: InferenceServiceSpec
    signals: Signals | None
    readings: dict[Shortage, Reading]
    watch: ShortageWatch
    standing: tuple[TakenStep, ...]


def decide_degradation(
    facts: Facts, declared: InferenceServiceSpec, signals: Signals | None
) -> Degradation:
    """The steps from now on.

    Args:
        facts: what is known of the service under the steps in force.
        declared: its spec without them, with as many replicas as were decided on.
        signals: what its pods say; None where they say nothing new.
    """
    before = facts.snapshot.service.status.degradation
    standing = standing_steps(before, declared)
    readings = read_shortages(facts, signals)
    watch = timed(_watch(facts), readings, facts.now.unix)
    void = tuple(
        _taken_back(each, "the spec is another one") for each in before if each not in standing
    )
    look = _Look(facts, declared, signals, readings, watch, standing)
    moved = _taken(look) or _left(look) or _moved_on(look) or Degradation(standing, watch)
    rung = rung_of(moved.steps, declared)
    return replace(moved, notices=(*void, *moved.notices), rung=rung)


def _watch(facts: Facts) -> ShortageWatch:
    """What is remembered in this term; another leader may have come between."""
    watch, epoch = facts.snapshot.shortages, facts.snapshot.operator.epoch
    return watch if watch is not None and watch.epoch == epoch else ShortageWatch(epoch)


def _taken(look: _Look) -> Degradation | None:
    """The next step for what has been short for long enough."""
    for shortage, reading in look.readings.items():
        case = Case(look.facts, look.declared, shortage, reading, look.signals)
        step = _next_step(look, case) if reading.state is State.SHORT else None
        if step is not None:
            text = f"{step.step}: {told(step, look.declared)}"
            retries = any(each.step == step.step and each.retrying for each in look.standing)
            heard = () if retries else (Notice(warning=True, reason="Degraded", message=text),)
            return _with(look, step, heard)
    return None


def _next_step(look: _Look, case: Case) -> TakenStep | None:
    since = look.watch.of(case.shortage).short_since
    standing = {each.step: each for each in look.standing}
    for rung in ladder_of(look.declared):
        if since is None or case.shortage not in RULES[rung.step].relieves:
            continue
        before = standing.get(rung.step)
        step = take(rung, before, case)
        if step is None:
            continue
        patience = after_seconds(rung)
        if before is not None and before.retrying:
            patience = min(patience, RETRY_SECONDS)
        return step if look.facts.now.unix - since >= patience else None
    return None


def _moved_on(look: _Look) -> Degradation | None:
    """A step that stays in force, as it is from now on. It is no news."""
    found = (moved_on(each, look.facts) for each in look.standing)
    step = next((each for each in found if each is not None), None)
    return None if step is None else _with(look, step, ())


def _left(look: _Look) -> Degradation | None:
    """The last step that is not needed any more is taken back."""
    for each in reversed(look.standing):
        why = left(each, look.facts, look.declared, look.watch)
        if why:
            steps = tuple(other for other in look.standing if other is not each)
            watch = afresh(look.watch, RULES[each.step].relieves)
            return Degradation(steps, watch, (_taken_back(each, why),))
    return None


def _with(look: _Look, step: TakenStep, notices: Iterable[Notice]) -> Degradation:
    standing = {each.step: each for each in look.standing} | {step.step: step}
    rungs = (each.step for each in ladder_of(look.declared))
    steps = tuple(standing[each] for each in rungs if each in standing)
    return Degradation(steps, afresh(look.watch, RULES[step.step].relieves), tuple(notices))


def _taken_back(step: TakenStep, why: str) -> Notice:
    text = f"{step.step} is taken back: {why}"
    return Notice(warning=False, reason="Recovered", message=text)
