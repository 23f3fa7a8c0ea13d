"""Where the Service points to, how many pods the router has, and the condition RouterReady."""

from __future__ import annotations

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.labels import ACTIVATOR, ENGINES, ROUTER
from headway_operator.decide.activator import is_activated
from headway_operator.decide.facts import Facts
from headway_operator.decide.pods import points_to, ready_pods
from headway_operator.decide.verdict import Verdict
from headway_operator.observe.classify import worst_problem
from headway_operator.snapshot import Snapshot


def decide_target(snapshot: Snapshot, spec: InferenceServiceSpec, *, leaving: bool = False) -> str:
    """The component whose pods the Service selects.

    The activator, if there is one, while no engine is ready or the last ones are leaving. Else the
    router as soon as one of its pods is ready. Without one the engines, unless nobody is ready:
    then there is nothing to gain by a change.
    """
    if is_activated(snapshot, spec, leaving=leaving):
        return ACTIVATOR
    if not spec.router.enabled:
        return ENGINES
    if ready_pods(snapshot.routers):
        return ROUTER
    if points_to(snapshot) == ROUTER and not ready_pods(snapshot.pods):
        return ROUTER
    return ENGINES


def router_replicas(snapshot: Snapshot, spec: InferenceServiceSpec) -> int | None:
    """Pods that the router is to have; None where its objects are left as they are.

    A router that is turned off loses its pods when the Service points elsewhere, and not before.
    Its objects stay, without effect: the operator has no right to delete anything.

    Nor has it pods at zero, as the engines have none: on a connection that a client keeps to one of
    them every request would be refused, and none would reach the activator.
    """
    if spec.router.enabled:
        return 0 if _is_at_zero(snapshot, spec) else spec.router.replicas
    is_made = f"{ROUTER} Deployment" in snapshot.children
    return 0 if is_made and points_to(snapshot) != ROUTER else None


def _is_at_zero(snapshot: Snapshot, spec: InferenceServiceSpec) -> bool:
    no_engine = spec.scaling.may_be_zero and spec.replicas == 0
    return no_engine and points_to(snapshot) == ACTIVATOR


def target_change(snapshot: Snapshot, target: str) -> str:
    """What the Service points to from now on; empty when nothing changes, and for a new one.

    Empty too when the activator is concerned: that pods come and go is told.
    """
    before = points_to(snapshot)
    return target if before and before != target and ACTIVATOR not in (before, target) else ""


def router_ready(facts: Facts) -> Verdict | None:
    """Whether requests go through the router; None where there is to be none."""
    if facts.spec is None or not facts.spec.router.enabled:
        return None
    snapshot, wanted = facts.snapshot, facts.spec.router.replicas
    ready = ready_pods(snapshot.routers)
    if ready:
        return Verdict("True", "RouterReady", f"{min(ready, wanted)} of {wanted} router pods ready")
    problem = worst_problem(snapshot.router_rollout, snapshot.routers, facts.now.unix)
    if problem is not None:
        text = f"{problem.message}. Requests go to the engines directly"
        return Verdict("False", problem.reason, text, alarming=True)
    if not ready_pods(snapshot.pods):
        return Verdict("False", "NoEngineReady", "The router waits for an engine that is ready")
    text = "No router pod is ready yet: requests go to the engines directly"
    return Verdict("False", "RouterStarting", text)
