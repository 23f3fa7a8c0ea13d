"""The Deployment that runs a service's activator."""

from __future__ import annotations

from typing import Any

from headway_operator.api.labels import (
    ACTIVATOR,
    ENGINES_SERVICE_SLOT,
    METRICS_PORT,
    POLICY_PORT,
    TEMPLATE_LABEL,
    child_name,
)
from headway_operator.api.spec import InferenceServiceSpec
from headway_operator.render.hashing import content_hash, present
from headway_operator.render.names import HTTP_PORT, object_labels
from headway_operator.render.router import apart, tool_deployment_spec
from headway_operator.render.security import container_security_context, pod_security_context

_SCRAPED = {
    "prometheus.io/scrape": "true",
    "prometheus.io/port": str(METRICS_PORT),
    "prometheus.io/path": "/metrics",
}

# It stops listening as soon as it is told to stop; proxies need a while to hear of that.
_LAME_DUCK_SECONDS = 5
_DRAIN_SECONDS = 300
_STOP_MARGIN_SECONDS = 10

_MEBIBYTE = 1024 * 1024
_BASE_MEBIBYTES = 160
_COPIES = 3
"""A body is there as it was read, as it is sent, and in buffers on the way."""


def activator_template(
    service: str, spec: InferenceServiceSpec, *, runtime_image: str
) -> dict[str, Any]:
    """The template of the activator's pods."""
    template: dict[str, Any] = {
        "metadata": {"labels": object_labels(service, ACTIVATOR), "annotations": dict(_SCRAPED)},
        "spec": _pod_spec(service, spec, runtime_image),
    }
    template["metadata"]["labels"][TEMPLATE_LABEL] = content_hash(template)
    return template


def activator_deployment_spec(
    service: str, replicas: int, template: dict[str, Any]
) -> dict[str, Any]:
    """The Deployment's spec around a pod template."""
    return tool_deployment_spec(service, ACTIVATOR, replicas, template)


def _pod_spec(service: str, spec: InferenceServiceSpec, runtime_image: str) -> dict[str, Any]:
    activator = spec.scaling.activator
    return present(
        {
            "affinity": {"podAntiAffinity": apart(service, ACTIVATOR)},
            "automountServiceAccountToken": False,
            "containers": [_container(service, spec, runtime_image)],
            "enableServiceLinks": False,
            "imagePullSecrets": [each.to_kubernetes() for each in spec.engine.image_pull_secrets],
            "nodeSelector": activator.node_selector,
            "securityContext": pod_security_context(spec.engine),
            "terminationGracePeriodSeconds": _LAME_DUCK_SECONDS
            + _DRAIN_SECONDS
            + _STOP_MARGIN_SECONDS,
            "tolerations": [each.to_kubernetes() for each in activator.tolerations],
        }
    )


def _container(service: str, spec: InferenceServiceSpec, runtime_image: str) -> dict[str, Any]:
    wait = f"import time; time.sleep({_LAME_DUCK_SECONDS})"
    limit = _BASE_MEBIBYTES + _COPIES * spec.scaling.activator.max_held_mebibytes
    asked = {"path": "/readyz", "port": METRICS_PORT, "scheme": "HTTP"}
    probe = {"httpGet": asked, "timeoutSeconds": 5}
    return {
        "name": ACTIVATOR,
        "image": runtime_image,
        "command": ["python3", "-m", "headway_runtime.activator"],
        "env": [{"name": key, "value": value} for key, value in _told(service, spec).items()],
        "lifecycle": {"preStop": {"exec": {"command": ["python3", "-c", wait]}}},
        "ports": [
            _port("http", HTTP_PORT),
            _port("control", POLICY_PORT),
            _port("metrics", METRICS_PORT),
        ],
        "resources": {
            "requests": {"cpu": "20m", "memory": "64Mi"},
            "limits": {"memory": f"{limit}Mi"},
        },
        "securityContext": container_security_context(read_only_root=True),
        "terminationMessagePolicy": "File",
        "startupProbe": {**probe, "periodSeconds": 1, "failureThreshold": 120},
        "readinessProbe": {**probe, "periodSeconds": 2, "failureThreshold": 3},
        "livenessProbe": {**probe, "periodSeconds": 10, "failureThreshold": 6},
    }


def _told(service: str, spec: InferenceServiceSpec) -> dict[str, str]:
    activator = spec.scaling.activator
    return {
        "HEADWAY_ENGINES_NAME": child_name(ENGINES_SERVICE_SLOT, service),
        "HEADWAY_ENGINE_PORT": str(HTTP_PORT),
        "HEADWAY_READINESS_PORT": str(METRICS_PORT),
        "HEADWAY_HTTP_PORT": str(HTTP_PORT),
        "HEADWAY_CONTROL_PORT": str(POLICY_PORT),
        "HEADWAY_METRICS_PORT": str(METRICS_PORT),
        "HEADWAY_SERVED_NAME": spec.model.served_name or service,
        "HEADWAY_HELD_REQUESTS": str(activator.max_held_requests),
        "HEADWAY_HELD_BYTES": str(activator.max_held_mebibytes * _MEBIBYTE),
        "HEADWAY_HOLD_SECONDS": str(activator.hold_seconds),
        "HEADWAY_START_SECONDS": str(max(1, spec.scaling.forecast_seconds)),
        "HEADWAY_DRAIN_SECONDS": str(_DRAIN_SECONDS),
    }


def _port(name: str, port: int) -> dict[str, Any]:
    return {"name": name, "containerPort": port, "protocol": "TCP"}
