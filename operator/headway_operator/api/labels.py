"""Labels, annotations and container names by which the objects of a service are recognised."""

from __future__ import annotations

SERVICE_LABEL = "headway.dev/service"
"""On every object of a service: the service's name."""

TEMPLATE_LABEL = "headway.dev/template"
"""On pods: hash of the template they were made from, so that a pod shows which spec it runs."""

APPLIED_HASH = "headway.dev/applied-hash"
"""Annotation: hash of the object as last applied; while it holds, nothing is written."""

TEMPLATE_INPUTS = "headway.dev/template-inputs"
"""Annotation of a Deployment: hash of what its pod template was made from."""

APPLIED_TEMPLATE = "headway.dev/applied-template"
"""Annotation of a Deployment: its pod template as it was made, as JSON."""

FIELD_MANAGER = "headway"

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED_SELECTOR = f"{MANAGED_BY}={FIELD_MANAGER}"

INSTALL = "install-runtime"
PREFLIGHT = "preflight"
SIDECAR = "headway-sidecar"
ENGINE = "engine"

POLICY_PORT = 8900
"""Port of the sidecar's policy API."""

METRICS_PORT = 8901
"""Port of the sidecar's probes and metrics."""

_POLICY_SUFFIX = "-policy"


def child_name(kind: str, service: str) -> str:
    """Name of a service's object of a kind; the ConfigMap holds baseline policy and keys."""
    return service + _POLICY_SUFFIX if kind == "ConfigMap" else service


def service_of(kind: str, name: str) -> str:
    """Name of the service that an object of that kind and name belongs to."""
    return name.removesuffix(_POLICY_SUFFIX) if kind == "ConfigMap" else name
