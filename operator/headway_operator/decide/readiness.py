"""The conditions Ready, ModelLoaded and Progressing."""

from __future__ import annotations

from dataclasses import replace

from headway_operator.decide.activator import activator_ready
from headway_operator.decide.facts import Facts
from headway_operator.decide.obstacles import FUNDAMENTAL, broken, left_behind, overdue
from headway_operator.decide.verdict import Verdict, first


def ready(facts: Facts) -> Verdict:
    """Whether all pods there must be, made from the current spec, answer and have a policy."""
    checks = (
        *(*FUNDAMENTAL, _predecessor, _no_replicas, _all_ready),
        *(broken, overdue, _rolling_out, _starting),
    )
    return first(checks, facts)


def model_loaded(facts: Facts) -> Verdict:
    """Whether the engines of all pods there must be have loaded the model."""
    return first((*FUNDAMENTAL, _no_engine, _all_loaded, broken, _loading), facts)


def progressing(facts: Facts) -> Verdict:
    """Whether pods are being started or replaced."""
    return first((*FUNDAMENTAL, _up_to_date, _stuck, overdue, _moving), facts)


def _predecessor(facts: Facts) -> Verdict | None:
    """A service that was deleted and made again at once waits for the old one's objects to go."""
    if not facts.snapshot.leftovers:
        return None
    kinds = ", ".join(facts.snapshot.leftovers)
    text = f"Waiting until {kinds} of the deleted InferenceService of this name is gone"
    return Verdict("False", "WaitingForDeletion", text)


def _no_replicas(facts: Facts) -> Verdict | None:
    if facts.wanted > 0:
        return None
    if facts.spec is None or not facts.spec.scaling.may_be_zero:
        return Verdict("False", "ScaledToZero", "spec.replicas is 0: nothing answers requests")
    unmended = left_behind(facts)
    if unmended is not None:
        return unmended
    activator = activator_ready(facts)
    if activator is not None and activator.truth != "True":
        # As alarming as there: the same text makes one event, of the type that comes first.
        return replace(activator, truth="False")
    text = (
        "No pod runs, as nobody uses the service: the activator takes requests and has one started"
    )
    return Verdict("True", "Idle", text)


def _no_engine(facts: Facts) -> Verdict | None:
    verdict = _no_replicas(facts)
    return None if verdict is None else Verdict("False", verdict.reason, verdict.message)


def _all_ready(facts: Facts) -> Verdict | None:
    if facts.ready < facts.least:
        return None
    ready = min(facts.ready, facts.wanted)
    return Verdict("True", "PodsReady", f"{ready} of {facts.wanted} pods answer requests")


def _rolling_out(facts: Facts) -> Verdict | None:
    if not facts.outdated:
        return None
    text = f"{facts.ready} of {facts.wanted} pods of the current spec answer requests"
    return Verdict("False", "RollingOut", f"{text}; older pods serve until they do")


def _starting(facts: Facts) -> Verdict:
    text = f"{facts.ready} of {facts.wanted} pods answer requests"
    return Verdict("False", "PodsStarting", text)


def _all_loaded(facts: Facts) -> Verdict | None:
    if facts.loaded < facts.least:
        return None
    loaded = min(facts.loaded, facts.wanted)
    return Verdict(
        "True", "ModelLoaded", f"{loaded} of {facts.wanted} engines have loaded the model"
    )


def _loading(facts: Facts) -> Verdict:
    text = f"{facts.loaded} of {facts.wanted} engines have loaded the model"
    return Verdict("False", "ModelLoading", text)


def _up_to_date(facts: Facts) -> Verdict | None:
    moving = facts.ready < facts.wanted or len(facts.current) > facts.wanted
    if moving or facts.outdated or facts.snapshot.leftovers:
        return None
    return Verdict("False", "UpToDate", "The pods are as the spec wants them")


def _stuck(facts: Facts) -> Verdict | None:
    return broken(facts) if facts.problem is not None and facts.problem.stalls else None


def _moving(facts: Facts) -> Verdict:
    verdict = _predecessor(facts) or _rolling_out(facts) or _starting(facts)
    return Verdict("True", verdict.reason, verdict.message)
