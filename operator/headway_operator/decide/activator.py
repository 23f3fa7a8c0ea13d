"""How many pods the activator has, when the Service points to it, and the condition of it."""

from __future__ import annotations

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.labels import ACTIVATOR, POLICY_PORT
from headway_operator.decide.facts import Facts
from headway_operator.decide.pods import points_to, ready_pods
from headway_operator.decide.scaling import MOST_UNREACHED, UNATTENDED_SECONDS, is_cut_off
from headway_operator.decide.verdict import Verdict
from headway_operator.observe.classify import worst_problem
from headway_operator.snapshot import Snapshot

_SILENT = (
    f"The operator cannot ask the activator's pods on port {POLICY_PORT}: check NetworkPolicies"
)
_CUT_OFF = (
    f"The operator cannot ask the activators of more than {MOST_UNREACHED} services on port "
    f"{POLICY_PORT}, though they are ready: check its network and NetworkPolicies"
)
_AT_ZERO = f"one is started when this has lasted {UNATTENDED_SECONDS:.0f} s"


def is_activated(snapshot: Snapshot, spec: InferenceServiceSpec, *, leaving: bool) -> bool:
    """Whether the Service points to the activator.

    It does while no engine is ready, and before the last ones go, so that requests come to it first
    and the engines have none that they do not know of.

    Args:
        snapshot: the service as it is.
        spec: its spec.
        leaving: its engines go, because nobody uses them.
    """
    # For one that is off no engine comes that requests could be held for.
    is_off = not spec.scaling.may_be_zero and spec.replicas == 0
    if not is_off and not ready_pods(snapshot.pods) and points_to(snapshot) == ACTIVATOR:
        return True  # also while its pods are not ready: nobody else is
    if not spec.scaling.may_be_zero or not ready_pods(snapshot.activators):
        return False
    return leaving or not ready_pods(snapshot.pods)


def activator_replicas(snapshot: Snapshot, spec: InferenceServiceSpec) -> int | None:
    """Pods that the activator is to have; None where its objects are left as they are.

    One that is turned off loses its pods when the Service points elsewhere, as a router does.
    """
    if spec.scaling.may_be_zero:
        return spec.scaling.activator.replicas
    if f"{ACTIVATOR} Deployment" not in snapshot.children:
        return None
    return spec.scaling.activator.replicas if points_to(snapshot) == ACTIVATOR else 0


def activator_ready(facts: Facts) -> Verdict | None:
    """Whether there is somebody to answer without an engine; None where there always is one."""
    if facts.spec is None or not facts.spec.scaling.may_be_zero:
        return None
    snapshot, wanted = facts.snapshot, facts.spec.scaling.activator.replicas
    ready, is_at_zero = ready_pods(snapshot.activators), facts.wanted == 0
    if ready and all(each.uid in snapshot.silent for each in snapshot.activators if each.ready):
        return _silent(snapshot, is_at_zero=is_at_zero)
    if ready:
        text = f"{min(ready, wanted)} of {wanted} activator pods ready"
        return Verdict("True", "ActivatorReady", text)
    text = "Engines stay until it is, also when nobody uses them"
    if is_at_zero:
        text = f"There is no engine either, so nobody answers: {_AT_ZERO}"
    problem = worst_problem(snapshot.activator_rollout, snapshot.activators, facts.now.unix)
    if problem is not None:
        text = f"{problem.message}. {text}"
        return Verdict("False", problem.reason, text, alarming=True)
    return Verdict("False", "ActivatorStarting", f"No activator pod is ready yet. {text}")


def _silent(snapshot: Snapshot, *, is_at_zero: bool) -> Verdict:
    reason, cause, then = "ActivatorSilent", _SILENT, _AT_ZERO
    if is_cut_off(snapshot):
        reason, cause, then = "OperatorCutOff", _CUT_OFF, "none is until it can again"
    text = f"Requests wait and start no engine: {then}" if is_at_zero else "Engines stay"
    return Verdict("False", reason, f"{cause}. {text}", alarming=True)
