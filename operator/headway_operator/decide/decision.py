"""From a snapshot to a plan."""

from __future__ import annotations

from dataclasses import replace

from headway_operator.api import InferenceServiceSpec
from headway_operator.decide.children import (
    children_of,
    due_applications,
    needed_applications,
    standing_refusals,
)
from headway_operator.decide.degradation import (
    Degradation,
    decide_degradation,
    held_back,
    least_of,
    replaces_in_place,
    standing_steps,
)
from headway_operator.decide.facts import Facts, gather_facts
from headway_operator.decide.making_room import makes_room
from headway_operator.decide.notices import (
    decide_notices,
    decide_router_notices,
    decide_scaling_notices,
)
from headway_operator.decide.plan import Application, Plan
from headway_operator.decide.policy import decide_policy, recipients
from headway_operator.decide.quarantine import bad_requests_of, decide_quarantine_notices
from headway_operator.decide.retune import Retuned
from headway_operator.decide.router import decide_target, target_change
from headway_operator.decide.scaling import claim_of, decide_scaling
from headway_operator.decide.status import decide_status, verdicts
from headway_operator.decide.tuning import decide_tuning
from headway_operator.memory.claims import GpuClaim
from headway_operator.memory.tuning import Tuning
from headway_operator.observe.instant import Instant
from headway_operator.render.deployment import template_hash
from headway_operator.snapshot import Snapshot


def decide(snapshot: Snapshot, now: Instant) -> Plan:
    """What is to be done about a service. The same snapshot always gives the same plan."""
    if snapshot.spec is None:
        facts = Facts(snapshot, None, snapshot.published, now)
        return _plan(facts, (), Retuned(snapshot.tuning or Tuning(), ()))
    return _decide(snapshot, snapshot.spec, now)


def _decide(snapshot: Snapshot, stored: InferenceServiceSpec, now: Instant) -> Plan:
    # Three specs: as stored, with the pods that are needed, and less what is given up for now.
    scaled = decide_scaling(snapshot, stored, now)
    declared = stored.model_copy(update={"replicas": scaled.replicas})
    # What is in force is what the status says: a step that it does not hold yet has no effect.
    steps = standing_steps(snapshot.service.status.degradation, declared)
    spec = held_back(declared, steps)
    target = decide_target(snapshot, spec, leaving=scaled.leaving)
    in_place = replaces_in_place(steps) or makes_room(snapshot)
    children = children_of(snapshot, spec, target, in_place=in_place)
    retuned = decide_tuning(snapshot, spec)
    published = snapshot.published
    if retuned is not None:
        published = decide_policy(snapshot, spec, retuned.tuning.point, now)
    deployment = next(child for child in children if child["kind"] == "Deployment")
    template = template_hash(deployment["spec"]["template"])
    needed = needed_applications(snapshot, children)
    refusals = standing_refusals(snapshot, needed)
    facts = gather_facts(snapshot, spec, published, template, now)
    least = least_of(facts.least, steps)
    facts = replace(facts, least=least, refusals=refusals, scaled=scaled, degradation=steps)
    degradation = decide_degradation(facts, declared, retuned.signals if retuned else None)
    return _plan(
        replace(facts, degradation=degradation.steps),
        due_applications(needed, refusals, now),
        retuned,
        target,
        degradation,
    )


def _claim(facts: Facts) -> GpuClaim | None:
    if facts.spec is None or facts.scaled is None:
        return None
    key = facts.snapshot.service.key
    return claim_of(key, facts.spec, facts.scaled, runs=facts.spec.replicas)


def _plan(
    facts: Facts,
    applied: tuple[Application, ...],
    retuned: Retuned | None,
    target: str = "",
    degradation: Degradation | None = None,
) -> Plan:
    snapshot, published, scaled = facts.snapshot, facts.published, facts.scaled
    found = verdicts(facts)
    status = decide_status(facts, found)
    return Plan(
        applications=applied,
        published=published,
        recipients=recipients(snapshot, published) if facts.spec and retuned and published else (),
        status=status,
        status_changed=status != snapshot.service.status,
        notices=(
            *(decide_scaling_notices(scaled) if scaled else ()),
            *(degradation.notices if degradation else ()),
            *decide_router_notices(target_change(snapshot, target) if target else ""),
            *decide_quarantine_notices(snapshot),
            *decide_notices(snapshot.service.status, status, found, retuned),
        ),
        tuning=retuned.tuning if retuned else None,
        changes=retuned.changes if retuned else (),
        scaling=scaled.memory if scaled else snapshot.scaling,
        idleness=scaled.idleness if scaled else snapshot.idleness,
        shortages=degradation.watch if degradation else snapshot.shortages,
        told=bad_requests_of(snapshot),
        rung=degradation.rung if degradation else 0,
        claim=_claim(facts),
    )
