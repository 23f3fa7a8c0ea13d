"""The Deployment that runs a service's pods."""

from __future__ import annotations

from typing import Any

from headway_operator.api.labels import METRICS_PORT, TEMPLATE_LABEL
from headway_operator.api.spec import InferenceServiceSpec
from headway_operator.render.containers import (
    engine_container,
    install_container,
    preflight_container,
    sidecar_container,
)
from headway_operator.render.hashing import content_hash, present
from headway_operator.render.names import object_labels, selector_labels
from headway_operator.render.rollout import rolled_out
from headway_operator.render.security import pod_security_context
from headway_operator.render.volumes import pod_volumes

_SCRAPED = {
    "prometheus.io/scrape": "true",
    "prometheus.io/port": str(METRICS_PORT),
    "prometheus.io/path": "/metrics",
}
"""For a Prometheus that finds its targets by annotations; a user's own go before them."""

_STOP_MARGIN_SECONDS = 10
"""Time for what is neither drain nor vLLM's own shutdown."""


def pod_template(
    service: str, service_uid: str, spec: InferenceServiceSpec, runtime_image: str
) -> dict[str, Any]:
    """The pods' template. It depends on nothing that is applied live: pods outlive policies."""
    engine = spec.engine
    template = {
        "metadata": present(
            {
                "labels": {**(engine.pod_labels or {}), **object_labels(service)},
                "annotations": {**_SCRAPED, **(engine.pod_annotations or {})},
            }
        ),
        "spec": _pod_spec(service, service_uid, spec, runtime_image),
    }
    template["metadata"]["labels"][TEMPLATE_LABEL] = content_hash(template)
    return template


def template_hash(template: dict[str, Any]) -> str:
    """The hash that pods made from this template carry as a label."""
    text: str = template["metadata"]["labels"][TEMPLATE_LABEL]
    return text


def deployment_spec(
    service: str, spec: InferenceServiceSpec, template: dict[str, Any], *, in_place: bool = False
) -> dict[str, Any]:
    """The Deployment's spec around a pod template.

    Args:
        service: name of the service.
        spec: what it should be.
        template: of its pods.
        in_place: an old pod makes room for the new one before that is there.
    """
    return rolled_out(
        template,
        spec.replicas,
        selector_labels(service),
        spec.engine.startup_timeout_seconds,
        in_place=in_place,
    )


def _pod_spec(
    service: str, service_uid: str, spec: InferenceServiceSpec, runtime_image: str
) -> dict[str, Any]:
    engine = spec.engine
    return present(
        {
            "affinity": engine.affinity,
            "automountServiceAccountToken": False,
            "containers": [engine_container(service, spec)],
            # A Service named "vllm" would otherwise put VLLM_PORT into the engine's environment.
            "enableServiceLinks": False,
            "imagePullSecrets": [each.to_kubernetes() for each in engine.image_pull_secrets],
            "initContainers": [
                install_container(runtime_image),
                preflight_container(service, spec),
                sidecar_container(service_uid, runtime_image),
            ],
            "nodeSelector": engine.node_selector,
            "priorityClassName": engine.priority_class_name,
            "runtimeClassName": engine.runtime_class_name,
            "securityContext": pod_security_context(engine),
            "serviceAccountName": engine.service_account_name,
            "terminationGracePeriodSeconds": engine.drain_seconds
            + engine.shutdown_timeout_seconds
            + _STOP_MARGIN_SECONDS,
            "tolerations": [each.to_kubernetes() for each in engine.tolerations],
            "volumes": pod_volumes(service, spec),
        }
    )
