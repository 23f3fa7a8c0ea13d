"""One look at a service: at most one step is taken, moved or left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.degradation import Step
from headway_operator.api.status import TakenStep
from headway_operator.decide.degradation.ladder import (
    RULES,
    after_seconds,
    ladder_of,
    rung_of,
    standing_steps,
)
from headway_operator.decide.degradation.leaving import (
    had_again,
    left,
    moved_on,
    not_ahead,
    tried_again,
    with_wanted,
)
from headway_operator.decide.degradation.reading import Reading, State, read_shortages
from headway_operator.decide.degradation.taking import Case, take
from headway_operator.decide.degradation.timing import afresh, timed
from headway_operator.decide.degradation.wording import told
from headway_operator.decide.facts import Facts
from headway_operator.decide.plan import Notice
from headway_operator.decide.retune.signals import Signals
from headway_operator.memory.shortage import Shortage, ShortageWatch


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
        _taken_back([each], "the spec is another one") for each in before if each not in standing
    )
    standing = tuple(with_wanted(not_ahead(each, facts.now), declared) for each in standing)
    look = _Look(facts, declared, signals, readings, watch, standing)
    moved = _taken(look) or _left(look) or _moved_on(look) or _tried_again(look)
    moved = moved or Degradation(standing, watch)
    rung = rung_of(moved.steps, declared)
    return replace(moved, notices=(*void, *moved.notices), rung=rung)


def _watch(facts: Facts) -> ShortageWatch:
    """What is remembered in this term; another leader may have come between."""
    watch, epoch = facts.snapshot.shortages, facts.snapshot.operator.epoch
    return watch if watch is not None and watch.epoch == epoch else ShortageWatch(epoch)


def _taken(look: _Look) -> Degradation | None:
    """The next step for what has been short for long enough."""
    for shortage in look.readings:
        step, patience = _next_step(look, shortage) or (None, 0)
        since = look.watch.of(shortage).short_since
        if step is not None and since is not None and look.facts.now.unix - since >= patience:
            text = f"{step.step}: {told(step, look.declared)}"
            retries = any(each.step == step.step and each.retrying for each in look.standing)
            heard = () if retries else (Notice(warning=True, reason="Degraded", message=text),)
            return _with(look, [step], heard)
    return None


def _next_step(look: _Look, shortage: Shortage) -> tuple[TakenStep, int] | None:
    """The next step for what is short, and for how many seconds it has to be; None without one."""
    reading = look.readings[shortage]
    if reading.state is not State.SHORT:
        return None
    case = Case(look.facts, look.declared, shortage, reading, look.signals)
    standing = {each.step: each for each in look.standing}
    for rung in ladder_of(look.declared):
        if shortage not in RULES[rung.step].relieves:
            continue
        step = take(rung, standing.get(rung.step), case)
        if step is None:
            continue
        return step, reading.hope_seconds + after_seconds(rung)
    return None


def _moved_on(look: _Look) -> Degradation | None:
    """A step that stays in force, as it is from now on. It is no news."""
    found = (moved_on(each, look.facts) for each in look.standing)
    step = next((each for each in found if each is not None), None)
    return None if step is None else _with(look, [step], ())


def _tried_again(look: _Look) -> Degradation | None:
    """Where no step is left and what is in force fails, what is declared may work again."""
    memory, problem = look.readings[Shortage.MEMORY], look.facts.problem
    lacks_memory = memory.state is State.SHORT and memory.widespread
    # Less memory breaks nothing else; another model may do.
    has_other_model = any(each.step is Step.FALLBACK_MODEL for each in look.standing)
    is_broken = problem is not None and problem.stalls and has_other_model
    if not (lacks_memory or is_broken) or _next_step(look, Shortage.MEMORY) is not None:
        return None
    steps = tried_again(look.standing, look.facts)
    return _with(look, steps, ()) if steps else None


def _left(look: _Look) -> Degradation | None:
    """The last step that is not needed any more is taken back, or all that replaced pods."""
    again = had_again(look.standing, look.facts)
    if again:
        return _without(look, again, "what is declared can be had again")
    for each in reversed(look.standing):
        why = left(each, look.facts, look.declared, look.watch)
        if why:
            return _without(look, [each], why)
    return None


def _without(look: _Look, gone: Sequence[TakenStep], why: str) -> Degradation:
    steps = tuple(each for each in look.standing if each not in gone)
    return Degradation(steps, _afresh(look, gone), (_taken_back(gone, why),))


def _with(look: _Look, moved: Sequence[TakenStep], notices: Iterable[Notice]) -> Degradation:
    changed = {each.step: each for each in moved}
    standing = {each.step: each for each in look.standing} | changed
    rungs = (each.step for each in ladder_of(look.declared))
    steps = tuple(standing[each] for each in rungs if each in standing)
    return Degradation(steps, _afresh(look, moved), tuple(notices))


def _afresh(look: _Look, changed: Iterable[TakenStep]) -> ShortageWatch:
    return afresh(look.watch, (each for step in changed for each in RULES[step.step].relieves))


def _taken_back(steps: Sequence[TakenStep], why: str) -> Notice:
    names = " and ".join(each.step for each in steps)
    text = f"{names} {'is' if len(steps) == 1 else 'are'} taken back: {why}"
    return Notice(warning=False, reason="Recovered", message=text)
