"""Makes records of the objects that the API server sends; large and secret parts are dropped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from headway_operator.api import InferenceServiceStatus
from headway_operator.api.labels import (
    APPLIED_HASH,
    APPLIED_TEMPLATE,
    COMPONENT_LABEL,
    FIELD_MANAGER,
    SERVICE_LABEL,
    TEMPLATE_INPUTS,
    TEMPLATE_LABEL,
    service_of,
    slot_of,
)
from headway_operator.observe.records import (
    AppliedTemplate,
    ChildRecord,
    ConditionRecord,
    ContainerRecord,
    PodRecord,
    RolloutRecord,
    ServiceKey,
    ServiceRecord,
    Terminated,
    Waiting,
)

_MAX_MESSAGE = 1024
"""Characters kept of a message; enough for every pattern that is looked for in one."""

_LONG_AGO = "1970-01-01T00:00:00Z"

Body = Mapping[str, Any]


def service_record(body: Body) -> ServiceRecord:
    """Trim an InferenceService."""
    metadata = body["metadata"]
    return ServiceRecord(
        key=ServiceKey(metadata["namespace"], metadata["name"]),
        uid=metadata["uid"],
        resource_version=int(metadata["resourceVersion"]),
        generation=metadata["generation"],
        deleting="deletionTimestamp" in metadata,
        spec=dict(body.get("spec") or {}),
        status=_status(body.get("status") or {}),
    )


def child_record(body: Body, slot: str | None = None) -> ChildRecord:
    """Trim one of a service's objects, in the slot that is given or that its labels tell."""
    metadata = body["metadata"]
    labels = metadata.get("labels") or {}
    slot = slot or slot_of(body["kind"], metadata["name"], labels)
    service = service_of(slot, metadata["name"])
    # A router's object has the name of what a service called "...-router" may have.
    is_anothers = labels.get(SERVICE_LABEL, service) != service
    selector = (body.get("spec") or {}).get("selector") or {}
    return ChildRecord(
        kind=body["kind"],
        slot=slot,
        name=metadata["name"],
        points_to=selector.get(COMPONENT_LABEL, "") if body["kind"] == "Service" else "",
        key=ServiceKey(metadata["namespace"], service),
        uid=metadata["uid"],
        resource_version=int(metadata["resourceVersion"]),
        controller_uid=_controller_uid(metadata.get("ownerReferences", ())),
        applied_hash=None if is_anothers else metadata.get("annotations", {}).get(APPLIED_HASH),
        owned_fields=_owned_fields(metadata.get("managedFields", ())),
        rollout=_rollout(body) if body["kind"] == "Deployment" else None,
    )


def pod_record(body: Body) -> PodRecord:
    """Trim a pod of a service."""
    metadata, spec, status = body["metadata"], body.get("spec", {}), body.get("status", {})
    conditions = _conditions(status)
    ready = conditions.get("Ready")
    return PodRecord(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=int(metadata["resourceVersion"]),
        template=metadata.get("labels", {}).get(TEMPLATE_LABEL, ""),
        ip=status.get("podIP"),
        phase=status.get("phase", ""),
        deleting="deletionTimestamp" in metadata,
        ready=ready is not None and ready.status == "True",
        scheduled=conditions.get("PodScheduled"),
        prepared=conditions.get("PodReadyToStartContainers"),
        containers=_containers(spec, status),
        gated=ready is not None and ready.reason == "ReadinessGatesNotReady",
        unready_since=_unready_since(metadata, ready),
    )


def _unready_since(metadata: Body, ready: ConditionRecord | None) -> float | None:
    """Not before the pod was made, by the API server's clock: its node's may be far behind."""
    if ready is None or ready.status == "True" or not ready.since:
        return None
    return max(ready.since, _unix_time(metadata.get("creationTimestamp") or _LONG_AGO))


def _status(status: Body) -> InferenceServiceStatus:
    try:
        return InferenceServiceStatus.model_validate(dict(status))
    except ValidationError:
        # Written by an older release or by hand: it is replaced, not obeyed.
        return InferenceServiceStatus()


def _controller_uid(references: Iterable[Body]) -> str | None:
    return next((each["uid"] for each in references if each.get("controller")), None)


def _owned_fields(managed_fields: Iterable[Body]) -> str:
    ours = (
        entry.get("fieldsV1", {})
        for entry in managed_fields
        if entry.get("manager") == FIELD_MANAGER
        and entry.get("operation") == "Apply"
        and not entry.get("subresource")
    )
    return json.dumps(next(ours, {}), separators=(",", ":"))


def _rollout(body: Body) -> RolloutRecord:
    status, annotations = body.get("status", {}), body["metadata"].get("annotations", {})
    inputs, text = annotations.get(TEMPLATE_INPUTS), annotations.get(APPLIED_TEMPLATE)
    return RolloutRecord(
        template=AppliedTemplate(inputs, text) if inputs and text else None,
        generation=body["metadata"].get("generation", 0),
        observed_generation=status.get("observedGeneration", 0),
        replicas=status.get("replicas", 0),
        conditions=_conditions(status),
        wanted=body.get("spec", {}).get("replicas", 1),
    )


def _conditions(status: Body) -> dict[str, ConditionRecord]:
    return {
        each["type"]: ConditionRecord(
            status=each["status"],
            reason=each.get("reason") or "",
            message=(each.get("message") or "")[:_MAX_MESSAGE],
            since=_unix_time(each.get("lastTransitionTime") or _LONG_AGO),
        )
        for each in status.get("conditions") or ()
    }


def _containers(spec: Body, status: Body) -> dict[str, ContainerRecord]:
    declared = {
        each["name"]: each
        for each in (*spec.get("initContainers", ()), *spec.get("containers", ()))
    }
    states = (
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    )
    return {each["name"]: _container(each, declared.get(each["name"], {})) for each in states}


def _container(status: Body, declared: Body) -> ContainerRecord:
    state = status.get("state") or {}
    running = state.get("running")
    limits = declared.get("resources", {}).get("limits", {})
    return ContainerRecord(
        name=status["name"],
        image=declared.get("image", ""),
        started=bool(status.get("started")),
        ready=bool(status.get("ready")),
        restarts=status.get("restartCount", 0),
        # Of a time that it does not know, as some runtimes tell none, the API server makes null.
        running_since=_unix_time(running.get("startedAt") or _LONG_AGO)
        if running is not None
        else None,
        waiting=_waiting(state.get("waiting")),
        terminated=_terminated(state.get("terminated")),
        last_terminated=_terminated((status.get("lastState") or {}).get("terminated")),
        memory_limit=limits.get("memory"),
        startup_seconds=_startup_seconds(declared.get("startupProbe") or {}),
    )


def _waiting(state: Body | None) -> Waiting | None:
    if not state:
        return None
    return Waiting(state.get("reason") or "", (state.get("message") or "")[:_MAX_MESSAGE])


def _terminated(state: Body | None) -> Terminated | None:
    if not state:
        return None
    return Terminated(
        reason=state.get("reason") or "",
        exit_code=state.get("exitCode", 0),
        message=(state.get("message") or "")[:_MAX_MESSAGE],
        ran_seconds=_ran_seconds(state),
    )


def _ran_seconds(state: Body) -> float:
    began, ended = state.get("startedAt"), state.get("finishedAt")
    return _unix_time(ended) - _unix_time(began) if began and ended else 0.0


def _startup_seconds(probe: Body) -> float:
    """What is left out of a probe is what Kubernetes makes of it."""
    return float(probe.get("periodSeconds", 10) * probe.get("failureThreshold", 3)) if probe else 0


def _unix_time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
