"""All objects of a service, ready to be applied."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any

from headway_operator.api import API_VERSION, KIND, InferenceServiceSpec
from headway_operator.api.labels import APPLIED_HASH, child_name
from headway_operator.observe.snapshot import PublicKey
from headway_operator.render.baseline import baseline_policy
from headway_operator.render.deployment import deployment_spec, pod_template
from headway_operator.render.hashing import content_hash
from headway_operator.render.names import object_labels
from headway_operator.render.network import (
    disruption_budget_spec,
    network_policy_spec,
    service_spec,
)
from headway_runtime.policy import encode


@dataclass(frozen=True)
class Blueprint:
    """Everything the objects of a service follow from.

    Attributes:
        namespace, name, uid, generation: of the InferenceService.
        spec: what the user declared.
        runtime_image: Headway's image in the pods.
        operator_namespace: where the operator runs; its pods may reach the policy port.
        public_keys: one key, or two while keys are rotated.
    """

    namespace: str
    name: str
    uid: str
    generation: int
    spec: InferenceServiceSpec = field(hash=False, repr=False)
    runtime_image: str
    operator_namespace: str
    public_keys: tuple[PublicKey, ...]


def render_children(blueprint: Blueprint) -> tuple[dict[str, Any], ...]:
    """The objects of a service in the order in which they are applied: what pods need first."""
    name, spec = blueprint.name, blueprint.spec
    template = pod_template(name, blueprint.uid, spec, blueprint.runtime_image)
    network_policy = network_policy_spec(name, blueprint.operator_namespace)
    contents = (
        ("v1", "ConfigMap", {"data": _policy_data(blueprint)}),
        ("networking.k8s.io/v1", "NetworkPolicy", {"spec": network_policy}),
        ("v1", "Service", {"spec": service_spec(name)}),
        ("policy/v1", "PodDisruptionBudget", {"spec": disruption_budget_spec(name)}),
        ("apps/v1", "Deployment", {"spec": deployment_spec(name, spec, template)}),
    )
    return tuple(_child(blueprint, *content) for content in contents)


def _policy_data(blueprint: Blueprint) -> dict[str, str]:
    policy = baseline_policy(blueprint.spec, blueprint.uid, blueprint.generation)
    keys = {key.key_id: base64.b64encode(key.raw).decode() for key in blueprint.public_keys}
    return {
        "baseline.json": encode(policy).decode(),
        "keys.json": json.dumps({"keys": keys}, sort_keys=True),
    }


def _child(
    blueprint: Blueprint, api_version: str, kind: str, content: dict[str, Any]
) -> dict[str, Any]:
    metadata = {
        "name": child_name(kind, blueprint.name),
        "namespace": blueprint.namespace,
        "labels": object_labels(blueprint.name),
        "ownerReferences": [_owner(blueprint)],
    }
    child = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}
    return {**child, "metadata": {**metadata, "annotations": {APPLIED_HASH: content_hash(child)}}}


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
