"""Objects as the API server sends them, and snapshots made of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.labels import ENGINE, INSTALL, PREFLIGHT, SIDECAR, TEMPLATE_LABEL
from headway_operator.decide import Plan, decide
from headway_operator.decide.plan import slot_of_body
from headway_operator.memory.memory import ServiceMemory
from headway_operator.memory.tuning import Tuning
from headway_operator.observe.instant import Instant
from headway_operator.observe.records import PodRecord, ServiceRecord
from headway_operator.observe.sidecars import SidecarReport
from headway_operator.observe.trimming import child_record, pod_record, service_record
from headway_operator.render import Blueprint, render_children
from headway_operator.snapshot import OperatorFacts, PublicKey, Snapshot
from headway_runtime.policy import Stamp

NOW = Instant.at(1_800_000_000.0)
UID = "11111111-2222-3333-4444-555555555555"
KEY = PublicKey("0123456789abcdef", b"k" * 32)
OPERATOR = OperatorFacts(
    "headway-system", "registry/runtime:1", (KEY,), epoch=7, router_image="registry/router:1"
)

MINIMAL_SPEC: dict[str, Any] = {
    "model": {"uri": "pvc://models/tiny"},
    "engine": {"image": "vllm/vllm-openai:v0.26.0"},
}


def later(seconds: float) -> Instant:
    """A moment after NOW."""
    return Instant.at(NOW.unix + seconds)


def spec(**changes: Any) -> dict[str, Any]:
    """A small valid spec; keyword ``engine`` is merged into the engine."""
    engine = {**MINIMAL_SPEC["engine"], **changes.pop("engine", {})}
    return {**MINIMAL_SPEC, "engine": engine, **changes}


def service(
    fields: Mapping[str, Any] | None = None, *, generation: int = 1, uid: str = UID
) -> ServiceRecord:
    """An InferenceService named demo."""
    metadata = {
        "namespace": "team",
        "name": "demo",
        "uid": uid,
        "generation": generation,
        "resourceVersion": "10",
    }
    return service_record({"metadata": metadata, "spec": fields or spec()})


def blueprint(fields: Mapping[str, Any] | None = None, *, generation: int = 1) -> Blueprint:
    """What the objects of demo are rendered from."""
    declared = InferenceServiceSpec.model_validate(fields or spec())
    return Blueprint(
        namespace="team",
        name="demo",
        uid=UID,
        generation=generation,
        spec=declared,
        runtime_image=OPERATOR.runtime_image,
        operator_namespace=OPERATOR.namespace,
        public_keys=OPERATOR.public_keys,
        router_replicas=declared.router.replicas if declared.router.enabled else None,
        router_image=OPERATOR.router_image,
        activator_replicas=declared.scaling.activator.replicas
        if declared.scaling.may_be_zero
        else None,
    )


def rendered(fields: Mapping[str, Any] | None = None, **more: int) -> dict[str, dict[str, Any]]:
    """The rendered objects by slot."""
    return {slot_of_body(child): child for child in render_children(blueprint(fields, **more))}


def template_of(fields: Mapping[str, Any] | None = None) -> str:
    """Hash that pods of this spec carry."""
    template = rendered(fields)["Deployment"]["spec"]["template"]
    text: str = template["metadata"]["labels"][TEMPLATE_LABEL]
    return text


def owned_fields(value: Any) -> Any:
    """The ownership tree the API server would keep; every list is taken as one field."""
    if not isinstance(value, Mapping):
        return {}
    return {f"f:{key}": owned_fields(child) for key, child in value.items()}


def applied(body: Mapping[str, Any], **status: Any) -> dict[str, Any]:
    """A rendered object as it is in the cluster once applied."""
    fields = {key: value for key, value in body.items() if key not in {"kind", "apiVersion"}}
    entry = {"manager": "headway", "operation": "Apply", "fieldsV1": owned_fields(fields)}
    metadata = {
        **body["metadata"],
        "uid": f"uid-of-{body['kind']}",
        "resourceVersion": "20",
        "generation": 1,
        "managedFields": [entry],
    }
    return {**json.loads(json.dumps(body)), "metadata": metadata, "status": status}


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    """State of a container that has not started."""
    return {"state": {"waiting": {"reason": reason, "message": message}}, **more}


def ended(
    reason: str, code: int, message: str = "", *, ran_s: float = 60.0, **more: Any
) -> dict[str, Any]:
    """State of a container that has ended after so many seconds."""
    began = Instant.at(NOW.unix - ran_s).text
    state: dict[str, Any] = {"reason": reason, "exitCode": code, "message": message}
    state |= {"startedAt": began, "finishedAt": NOW.text}
    return {"state": {"terminated": state}, **more}


def running(*, started: bool = True, since: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    """State of a container that runs."""
    return {"state": {"running": {"startedAt": since}}, "started": started, "ready": started}


def pod_body(
    name: str = "demo-1",
    *,
    template: str | None = None,
    ready: bool = False,
    scheduled: tuple[str, str, str] = ("True", "", ""),
    **containers: dict[str, Any],
) -> dict[str, Any]:
    """A pod; keywords name containers with underscores for dashes."""
    states = {key.replace("_", "-"): state for key, state in containers.items()}
    declared = rendered()["Deployment"]["spec"]["template"]["spec"]
    initial = (INSTALL, PREFLIGHT, SIDECAR)
    labels = {TEMPLATE_LABEL: template_of() if template is None else template}
    return {
        "metadata": {
            "namespace": "team",
            "name": name,
            "uid": f"uid-of-{name}",
            "resourceVersion": "30",
            "labels": labels,
        },
        "spec": declared,
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": scheduled[0],
                    "reason": scheduled[1],
                    "message": scheduled[2],
                },
                {"type": "Ready", "status": str(ready)},
            ],
            "initContainerStatuses": [
                {"name": key, **state} for key, state in states.items() if key in initial
            ],
            "containerStatuses": [
                {"name": key, **state} for key, state in states.items() if key not in initial
            ],
        },
    }


def pod(name: str = "demo-1", **more: Any) -> PodRecord:
    """The record of such a pod."""
    return pod_record(pod_body(name, **more))


def loading_pod(name: str = "demo-1", **more: Any) -> PodRecord:
    """A pod whose sidecar is up and whose engine loads."""
    return pod(
        name, **{SIDECAR.replace("-", "_"): running(), ENGINE: running(started=False), **more}
    )


def ready_pod(name: str = "demo-1", **more: Any) -> PodRecord:
    """A pod that answers."""
    return loading_pod(name, **{ENGINE: running(), "ready": True, **more})


def snapshot(
    record: ServiceRecord | None = None, *pods: PodRecord, published: Any = None, **more: Any
) -> Snapshot:
    """A snapshot in which everything has been applied, unless ``children`` says otherwise."""
    record = record or service()
    parsed = ServiceMemory(record.uid).parsed(record)
    children = {}
    if parsed.spec is not None:
        bodies = render_children(
            replace(blueprint(record.spec, generation=record.generation), uid=record.uid)
        )
        children = {slot_of_body(body): child_record(applied(body)) for body in bodies}
    return Snapshot(
        service=record,
        operator=more.pop("operator", OPERATOR),
        spec=parsed.spec,
        spec_problem=parsed.problem,
        children=more.pop("children", children),
        pods=tuple(sorted(pods, key=lambda each: each.name)),
        published=published,
        tuning=more.pop("tuning", Tuning()),
        **more,
    )


def carried_out(before: Snapshot, plan: Plan) -> Snapshot:
    """The snapshot after a plan was carried out and every push was acknowledged."""
    children = {
        **before.children,
        **{each.slot: child_record(applied(each.body)) for each in plan.applications},
    }
    stamp: Stamp | None = plan.published.policy.stamp if plan.published else None
    reports = {
        **before.reports,
        **{each.uid: SidecarReport(stamp, asked=True) for each in plan.recipients},
    }
    return replace(
        before,
        service=replace(before.service, status=plan.status),
        children=children,
        published=plan.published,
        tuning=plan.tuning,
        scaling=plan.scaling,
        shortages=plan.shortages,
        told=plan.told,
        reports=reports,
    )


def settled(start: Snapshot, now: Instant = NOW) -> Snapshot:
    """The snapshot after plans were carried out until nothing changes."""
    for _ in range(4):
        start = carried_out(start, decide(start, now))
    return start


def condition(plan: Plan, kind: str) -> tuple[str, str, str]:
    """Status, reason and message of a condition."""
    found = next(each for each in plan.status.conditions if each.type == kind)
    return found.status, found.reason, found.message


STALLING = pod(engine=waiting("InvalidImageName"))
"""A pod that will never start."""

CRASHING = pod(engine=ended("Error", 1))
"""A pod whose engine ended once."""
