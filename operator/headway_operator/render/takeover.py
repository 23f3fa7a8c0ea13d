"""Keeps the pod template of a running service while nothing that a user controls has changed.

A release may render pods differently: another variable, probe or default image. That alone must
not replace a single pod.
"""

from __future__ import annotations

import json
from typing import Any

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.activator import Activator
from headway_operator.api.labels import APPLIED_TEMPLATE, TEMPLATE_INPUTS, TEMPLATE_LABEL
from headway_operator.api.router import Router
from headway_operator.observe.records import AppliedTemplate
from headway_operator.render.arguments import DOOR_CLASS
from headway_operator.render.hashing import content_hash
from headway_runtime.policy import FORMAT_VERSION, OLDEST_VERSION

_MAX_CHARACTERS = 128 * 1024
"""All annotations of an object together may have 256 KiB."""


def inputs_hash(service: str, service_uid: str, spec: InferenceServiceSpec) -> str:
    """Hash of all that a user controls in a pod template.

    Fields at their defaults do not count, so that a release may add fields.
    """
    parts = [part.to_kubernetes() for part in (spec.model, spec.engine, spec.runtime)]
    return content_hash([service, service_uid, *parts])


def router_inputs_hash(service: str, service_uid: str, spec: InferenceServiceSpec) -> str:
    """The same for a router's pod template."""
    like_any = {"enabled": True, "replicas": Router().replicas}
    router = spec.router.model_copy(update=like_any)
    parts = [part.to_kubernetes() for part in (router, spec.runtime)]
    return content_hash([service, service_uid, *parts, *_shared_inputs(spec)])


def activator_inputs_hash(service: str, service_uid: str, spec: InferenceServiceSpec) -> str:
    """The same for an activator's pod template."""
    like_any = {"replicas": Activator().replicas}
    activator = spec.scaling.activator.model_copy(update=like_any)
    parts = [part.to_kubernetes() for part in (activator, spec.runtime)]
    told = [spec.model.served_name, spec.scaling.forecast_seconds]
    return content_hash([service, service_uid, *parts, *told, *_shared_inputs(spec)])


def _shared_inputs(spec: InferenceServiceSpec) -> list[Any]:
    """What pods in front of engines take over from the engines'."""
    engine = spec.engine
    security = [engine.pod_security, engine.run_as_user, engine.fs_group]
    return [security, [each.to_kubernetes() for each in engine.image_pull_secrets]]


def kept_template(applied: AppliedTemplate | None, inputs: str) -> dict[str, Any] | None:
    """The pod template as it was applied, if it was made from the same inputs.

    It is the one that Headway wrote down, not the one that is in force: what somebody else
    changed there is put back.
    """
    if applied is None or applied.inputs != inputs:
        return None
    try:
        template: dict[str, Any] = json.loads(applied.text)
        return template if _is_intact(template) else None
    except (ValueError, RecursionError, KeyError, TypeError):
        return None


def policy_version(template: dict[str, Any]) -> int:
    """Newest version of the policy format that pods of a template read.

    Releases that start engines without a door read nothing newer than the oldest version.
    """
    containers = template.get("spec", {}).get("containers", ())
    has_door = any(DOOR_CLASS in each.get("args", ()) for each in containers)
    return FORMAT_VERSION if has_door else OLDEST_VERSION


def template_annotations(template: dict[str, Any], inputs: str) -> dict[str, str]:
    """Annotations of the Deployment from which a later release finds its template again.

    None for a template that is too large for one: the next release may replace its pods.
    """
    text = json.dumps(template, sort_keys=True, separators=(",", ":"))
    if len(text) > _MAX_CHARACTERS:
        return {}
    return {TEMPLATE_INPUTS: inputs, APPLIED_TEMPLATE: text}


def _is_intact(template: dict[str, Any]) -> bool:
    """Whether the template is what its label says: somebody may have edited the annotation."""
    metadata = template["metadata"]
    labels = dict(metadata["labels"])
    label = labels.pop(TEMPLATE_LABEL)
    unlabelled = {**template, "metadata": {**metadata, "labels": labels}}
    return bool(label == content_hash(unlabelled))
