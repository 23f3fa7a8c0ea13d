"""All objects of a service, ready to be applied."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from headway_operator.api import API_VERSION, KIND, InferenceServiceSpec
from headway_operator.api.labels import ACTIVATOR, APPLIED_HASH, ENGINES, ROUTER, child_name
from headway_operator.observe.records import AppliedTemplate
from headway_operator.render.activator import activator_deployment_spec, activator_template
from headway_operator.render.baseline import baseline_policy
from headway_operator.render.deployment import deployment_spec, pod_template
from headway_operator.render.disruption_budgets import disruption_budget_spec
from headway_operator.render.hashing import content_hash
from headway_operator.render.names import object_labels
from headway_operator.render.network_policies import (
    activator_network_policy_spec,
    network_policy_spec,
    router_network_policy_spec,
)
from headway_operator.render.router import router_deployment_spec, router_template
from headway_operator.render.services import engines_service_spec, service_spec
from headway_operator.render.takeover import (
    activator_inputs_hash,
    inputs_hash,
    kept_template,
    policy_version,
    router_inputs_hash,
    template_annotations,
)
from headway_operator.snapshot import PublicKey
from headway_runtime.policy import encode

_API_VERSIONS = {
    "ConfigMap": "v1",
    "Deployment": "apps/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
    "Service": "v1",
}


@dataclass(frozen=True)
class Blueprint:
    """Everything the objects of a service follow from.

    Attributes:
        namespace, name, uid, generation: of the InferenceService.
        spec: what the user declared.
        runtime_image: Headway's image for pods that are made anew.
        operator_namespace: where the operator runs; its pods may reach the policy port.
        public_keys: one key, or two while keys are rotated.
        applied: the pod template as it was last applied; None where that is not known.
        points_to: the component whose pods the Service selects.
        router_replicas: pods of the router; None where nothing of it is rendered.
        router_image: image with vllm-router for a service that names none.
        router_applied: the router's pod template as it was last applied.
        activator_replicas: pods of the activator; None where nothing of it is rendered.
        activator_applied: the activator's pod template as it was last applied.
        in_place: an old pod makes room for the new one before that is there.
    """

    namespace: str
    name: str
    uid: str
    generation: int
    spec: InferenceServiceSpec = field(repr=False)
    runtime_image: str
    operator_namespace: str
    public_keys: tuple[PublicKey, ...]
    applied: AppliedTemplate | None = None
    points_to: str = ENGINES
    router_replicas: int | None = None
    router_image: str = ""
    router_applied: AppliedTemplate | None = None
    activator_replicas: int | None = None
    activator_applied: AppliedTemplate | None = None
    in_place: bool = False


def render_children(blueprint: Blueprint) -> tuple[dict[str, Any], ...]:
    """The objects of a service in the order in which they are applied: what pods need first."""
    name, spec = blueprint.name, blueprint.spec
    inputs = inputs_hash(name, blueprint.uid, spec)
    template = kept_template(blueprint.applied, inputs) or _new_template(blueprint)
    network_policy = network_policy_spec(name, blueprint.operator_namespace)
    contents = (
        ("ConfigMap", {"data": _policy_data(blueprint, policy_version(template))}),
        ("NetworkPolicy", {"spec": network_policy}),
        ("Service", {"spec": service_spec(name, blueprint.points_to)}),
        ("PodDisruptionBudget", {"spec": disruption_budget_spec(name)}),
    )
    return (
        *(_child(blueprint, *content) for content in contents),
        _child(
            blueprint,
            "Deployment",
            {"spec": deployment_spec(name, spec, template, in_place=blueprint.in_place)},
            template_annotations(template, inputs),
        ),
        *_router_children(blueprint),
        *_activator_children(blueprint),
    )


def _router_children(blueprint: Blueprint) -> Iterator[dict[str, Any]]:
    name, spec, replicas = blueprint.name, blueprint.spec, blueprint.router_replicas
    if replicas is None:
        return
    network_policy = router_network_policy_spec(name)
    budget = disruption_budget_spec(name, ROUTER)
    for kind, content in (
        ("NetworkPolicy", network_policy),
        ("Service", engines_service_spec(name)),
        ("PodDisruptionBudget", budget),
    ):
        yield _child(blueprint, kind, {"spec": content}, component=ROUTER)
    inputs = router_inputs_hash(name, blueprint.uid, spec)
    template = kept_template(blueprint.router_applied, inputs) or router_template(
        name,
        spec,
        image=spec.router.image or blueprint.router_image,
        runtime_image=spec.runtime.image or blueprint.runtime_image,
    )
    content = {"spec": router_deployment_spec(name, replicas, template)}
    annotations = template_annotations(template, inputs)
    yield _child(blueprint, "Deployment", content, annotations, component=ROUTER)


def _activator_children(blueprint: Blueprint) -> Iterator[dict[str, Any]]:
    name, spec, replicas = blueprint.name, blueprint.spec, blueprint.activator_replicas
    if replicas is None:
        return
    if blueprint.router_replicas is None:
        yield _child(blueprint, "Service", {"spec": engines_service_spec(name)}, component=ROUTER)
    network_policy = activator_network_policy_spec(name, blueprint.operator_namespace)
    budget = disruption_budget_spec(name, ACTIVATOR)
    for kind, content in (("NetworkPolicy", network_policy), ("PodDisruptionBudget", budget)):
        yield _child(blueprint, kind, {"spec": content}, component=ACTIVATOR)
    inputs = activator_inputs_hash(name, blueprint.uid, spec)
    template = kept_template(blueprint.activator_applied, inputs) or activator_template(
        name, spec, runtime_image=spec.runtime.image or blueprint.runtime_image
    )
    content = {"spec": activator_deployment_spec(name, replicas, template)}
    annotations = template_annotations(template, inputs)
    yield _child(blueprint, "Deployment", content, annotations, component=ACTIVATOR)


def _new_template(blueprint: Blueprint) -> dict[str, Any]:
    image = blueprint.spec.runtime.image or blueprint.runtime_image
    return pod_template(blueprint.name, blueprint.uid, blueprint.spec, image)


def _policy_data(blueprint: Blueprint, format_version: int) -> dict[str, str]:
    policy = baseline_policy(blueprint.spec, blueprint.uid, blueprint.generation, format_version)
    keys = {key.key_id: base64.b64encode(key.raw).decode() for key in blueprint.public_keys}
    return {
        "baseline.json": encode(policy).decode(),
        "keys.json": json.dumps({"keys": keys}, sort_keys=True),
    }


def _child(
    blueprint: Blueprint,
    kind: str,
    content: dict[str, Any],
    annotations: Mapping[str, str] = MappingProxyType({}),
    component: str = ENGINES,
) -> dict[str, Any]:
    labels = object_labels(blueprint.name, component)
    slot = kind if component == ENGINES else f"{component} {kind}"
    metadata = {
        "name": child_name(slot, blueprint.name),
        "namespace": blueprint.namespace,
        "labels": labels,
        "ownerReferences": [_owner(blueprint)],
        **({"annotations": dict(annotations)} if annotations else {}),
    }
    child = {"apiVersion": _API_VERSIONS[kind], "kind": kind, "metadata": metadata, **content}
    hashed = {**annotations, APPLIED_HASH: content_hash(child)}
    return {**child, "metadata": {**metadata, "annotations": hashed}}


def _owner(blueprint: Blueprint) -> dict[str, Any]:
    """Makes the cluster delete the object with the service, also while no operator runs."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": blueprint.name,
        "uid": blueprint.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
