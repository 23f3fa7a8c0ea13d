"""The Deployment that runs a service's router, and beside it who tells it the engines."""

from __future__ import annotations

from typing import Any

from headway_operator.api.labels import (
    DISCOVERY,
    METRICS_PORT,
    ROUTER,
    ROUTER_METRICS_PORT,
    TEMPLATE_LABEL,
    child_name,
)
from headway_operator.api.spec import InferenceServiceSpec
from headway_operator.render.hashing import content_hash, present
from headway_operator.render.names import HTTP_PORT, object_labels, selector_labels
from headway_operator.render.rollout import rolled_out
from headway_operator.render.router_arguments import ROUTER_COMMAND, router_arguments
from headway_operator.render.security import container_security_context, pod_security_context
from headway_operator.render.volumes import mount

_SCRAPED = {
    "prometheus.io/scrape": "true",
    "prometheus.io/port": str(ROUTER_METRICS_PORT),
    "prometheus.io/path": "/metrics",
}
_TMP = "tmp"

# It stops listening as soon as it is told to stop; proxies need a while to hear of that.
_LAME_DUCK_SECONDS = 5
_STOP_MARGIN_SECONDS = 10

_PROGRESS_DEADLINE_SECONDS = 600
_RESOURCES = {
    "requests": {"cpu": "100m", "memory": "128Mi"},
    "limits": {"memory": "1Gi"},
}
_DISCOVERY_RESOURCES = {
    "requests": {"cpu": "20m", "memory": "64Mi"},
    "limits": {"memory": "128Mi"},
}


def router_template(
    service: str, spec: InferenceServiceSpec, *, image: str, runtime_image: str
) -> dict[str, Any]:
    """The template of the router's pods."""
    template: dict[str, Any] = {
        "metadata": {"labels": object_labels(service, ROUTER), "annotations": dict(_SCRAPED)},
        "spec": _pod_spec(service, spec, image, runtime_image),
    }
    template["metadata"]["labels"][TEMPLATE_LABEL] = content_hash(template)
    return template


def router_deployment_spec(service: str, replicas: int, template: dict[str, Any]) -> dict[str, Any]:
    """The Deployment's spec around a pod template."""
    return tool_deployment_spec(service, ROUTER, replicas, template)


def tool_deployment_spec(
    service: str, component: str, replicas: int, template: dict[str, Any]
) -> dict[str, Any]:
    """The Deployment's spec of what stands in front of engines."""
    selector = selector_labels(service, component)
    return rolled_out(template, replicas, selector, _PROGRESS_DEADLINE_SECONDS)


def _pod_spec(
    service: str, spec: InferenceServiceSpec, image: str, runtime_image: str
) -> dict[str, Any]:
    router = spec.router
    return present(
        {
            "affinity": {"podAntiAffinity": apart(service, ROUTER)},
            "automountServiceAccountToken": False,
            "containers": [_router_container(spec, image)],
            "enableServiceLinks": False,
            "imagePullSecrets": [each.to_kubernetes() for each in spec.engine.image_pull_secrets],
            "initContainers": [_discovery_container(service, runtime_image)],
            "nodeSelector": router.node_selector,
            "securityContext": pod_security_context(spec.engine),
            "terminationGracePeriodSeconds": _LAME_DUCK_SECONDS
            + router.drain_seconds
            + _STOP_MARGIN_SECONDS,
            "tolerations": [each.to_kubernetes() for each in router.tolerations],
            "volumes": [{"name": _TMP, "emptyDir": {}}],
        }
    )


def apart(service: str, component: str) -> dict[str, Any]:
    """On different nodes where there are some: a node that dies must not take all of them."""
    term = {
        "labelSelector": {"matchLabels": selector_labels(service, component)},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "podAffinityTerm": term}
        ]
    }


def _router_container(spec: InferenceServiceSpec, image: str) -> dict[str, Any]:
    router = spec.router
    wait = f"import time; time.sleep({_LAME_DUCK_SECONDS})"
    return {
        "name": ROUTER,
        "image": image,
        "command": list(ROUTER_COMMAND),
        "args": router_arguments(router),
        "lifecycle": {"preStop": {"exec": {"command": ["python3", "-c", wait]}}},
        "ports": [_port("http", HTTP_PORT), _port("metrics", ROUTER_METRICS_PORT)],
        "resources": router.resources.to_kubernetes() if router.resources else _RESOURCES,
        "securityContext": container_security_context(read_only_root=True),
        "terminationMessagePolicy": "File",
        "volumeMounts": [mount(_TMP, "/tmp")],  # noqa: S108 - what Python takes for a home
        # Ready with an engine that takes requests, and not before.
        "startupProbe": {**_get("/liveness"), "periodSeconds": 1, "failureThreshold": 120},
        "readinessProbe": {**_get("/readiness"), "periodSeconds": 1, "failureThreshold": 2},
        "livenessProbe": {**_get("/liveness"), "periodSeconds": 10, "failureThreshold": 6},
    }


def _discovery_container(service: str, runtime_image: str) -> dict[str, Any]:
    """A native sidecar, so that a router which is being stopped still hears of engines."""
    environment = {
        "HEADWAY_ENGINES_NAME": child_name(f"{ROUTER} Service", service),
        "HEADWAY_ENGINE_PORT": str(HTTP_PORT),
        "HEADWAY_READINESS_PORT": str(METRICS_PORT),
        "HEADWAY_ROUTER_URL": f"http://127.0.0.1:{HTTP_PORT}",
    }
    return {
        "name": DISCOVERY,
        "image": runtime_image,
        "command": ["python3", "-m", "headway_runtime.discovery"],
        "env": [{"name": key, "value": value} for key, value in environment.items()],
        "resources": _DISCOVERY_RESOURCES,
        "restartPolicy": "Always",
        "securityContext": container_security_context(read_only_root=True),
        "terminationMessagePolicy": "File",
    }


def _get(path: str) -> dict[str, Any]:
    probe = {"path": path, "port": HTTP_PORT, "scheme": "HTTP"}
    return {"httpGet": probe, "timeoutSeconds": 5}


def _port(name: str, port: int) -> dict[str, Any]:
    return {"name": name, "containerPort": port, "protocol": "TCP"}
