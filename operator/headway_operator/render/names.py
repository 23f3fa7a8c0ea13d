"""Names, labels, ports and paths that the objects of a service share."""

from __future__ import annotations

from headway_operator.api.labels import (
    COMPONENT_LABEL,
    ENGINES,
    FIELD_MANAGER,
    MANAGED_BY,
    SERVICE_LABEL,
)

HTTP_PORT = 8000
SERVICE_PORT = 80

LIBRARY_DIR = "/opt/headway"
RUN_DIR = "/run/headway"
POLICY_DIR = "/etc/headway/policy"
HOME_DIR = "/home/headway"
MODELS_DIR = "/models"
CACHE_DIR = "/cache/huggingface"


def selector_labels(service: str, component: str = ENGINES) -> dict[str, str]:
    """Labels that select a service's pods. Immutable, so they never depend on a version."""
    return {SERVICE_LABEL: service, COMPONENT_LABEL: component}


def selector_text(service: str) -> str:
    """The same selector as text, for the scale subresource."""
    return ",".join(f"{key}={value}" for key, value in sorted(selector_labels(service).items()))


def object_labels(service: str, component: str = ENGINES) -> dict[str, str]:
    """Labels of every object that belongs to a service."""
    return {
        **selector_labels(service, component),
        "app.kubernetes.io/name": f"headway-{component}",
        "app.kubernetes.io/instance": service,
        MANAGED_BY: FIELD_MANAGER,
    }


def endpoint(namespace: str, service: str) -> str:
    """Where a service answers inside the cluster."""
    return f"http://{service}.{namespace}.svc"
