"""Services with and without a router, and its pods."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.labels import COMPONENT_LABEL
from headway_operator.decide import Plan
from headway_operator.observe.records import PodRecord, ServiceKey
from headway_operator.snapshot import Snapshot
from tests.unit.operator.samples import pod, service, spec

ON = spec(router={"enabled": True})
OFF = spec()
DEMO = ServiceKey("team", "demo")


def router_pod(name: str = "demo-router-1", **more: Any) -> PodRecord:
    return pod(name, template="router", **more)


READY_ROUTER = router_pod(ready=True)
UNREADY_ROUTER = router_pod()


def with_spec(before: Snapshot, fields: dict[str, Any]) -> Snapshot:
    record = replace(service(fields, generation=2), status=before.service.status)
    return replace(before, service=record, spec=InferenceServiceSpec.model_validate(fields))


def pointed_to(plan: Plan, before: Snapshot) -> str:
    """Where the Service points to once the plan is carried out."""
    for each in plan.applications:
        if each.slot == "Service":
            return str(each.body["spec"]["selector"][COMPONENT_LABEL])
    return before.children["Service"].points_to


def reasons(plan: Plan) -> list[str]:
    return [notice.reason for notice in plan.notices]
