"""How a service's pods are reached, by whom, and how many may be away at once."""

from __future__ import annotations

from typing import Any

from headway_operator.api.labels import METRICS_PORT, POLICY_PORT
from headway_operator.render.names import HTTP_PORT, SERVICE_PORT, selector_labels

_OPERATOR_LABELS = {
    "app.kubernetes.io/name": "headway",
    "app.kubernetes.io/component": "operator",
}


def service_spec(service: str) -> dict[str, Any]:
    """The Service clients talk to."""
    port = {"name": "http", "port": SERVICE_PORT, "protocol": "TCP", "targetPort": HTTP_PORT}
    return {"ports": [port], "selector": selector_labels(service), "type": "ClusterIP"}


def network_policy_spec(service: str, operator_namespace: str) -> dict[str, Any]:
    """Only the operator reaches the policy port; everybody reaches requests and metrics."""
    operator = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": operator_namespace}},
        "podSelector": {"matchLabels": _OPERATOR_LABELS},
    }
    return {
        "podSelector": {"matchLabels": selector_labels(service)},
        "policyTypes": ["Ingress"],
        "ingress": [
            {"ports": [_port(HTTP_PORT), _port(METRICS_PORT)]},
            {"from": [operator], "ports": [_port(POLICY_PORT)]},
        ],
    }


def disruption_budget_spec(service: str) -> dict[str, Any]:
    """One pod at a time; one that is broken never blocks a node's drain."""
    return {
        "maxUnavailable": 1,
        "selector": {"matchLabels": selector_labels(service)},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }


def _port(port: int) -> dict[str, Any]:
    return {"port": port, "protocol": "TCP"}
