"""NetworkPolicies: who reaches a service's pods, and whom they reach."""

from __future__ import annotations

from typing import Any

from headway_operator.api.labels import (
    ACTIVATOR,
    METRICS_PORT,
    POLICY_PORT,
    ROUTER,
    ROUTER_METRICS_PORT,
)
from headway_operator.render.names import HTTP_PORT, selector_labels

_OPERATOR_LABELS = {
    "app.kubernetes.io/name": "headway",
    "app.kubernetes.io/component": "operator",
}

_DNS_PORTS = (53, 5353)
"""Name servers listen on the first, or behind their Service on the second (OpenShift)."""


def network_policy_spec(service: str, operator_namespace: str) -> dict[str, Any]:
    """Only the operator reaches the policy port; everybody reaches requests and metrics."""
    operator = _operator(operator_namespace)
    return {
        "podSelector": {"matchLabels": selector_labels(service)},
        "policyTypes": ["Ingress"],
        "ingress": [
            {"ports": [_port(HTTP_PORT), _port(METRICS_PORT)]},
            {"from": [operator], "ports": [_port(POLICY_PORT)]},
        ],
    }


def router_network_policy_spec(service: str) -> dict[str, Any]:
    """The router reaches the engines of its service and name servers, and nobody else.

    Its list of engines can be changed by whoever reaches its port: what must not happen is that a
    request goes anywhere else.
    """
    return {
        "podSelector": {"matchLabels": selector_labels(service, ROUTER)},
        "policyTypes": ["Egress", "Ingress"],
        "ingress": [{"ports": [_port(HTTP_PORT), _port(ROUTER_METRICS_PORT)]}],
        "egress": _to_engines(service),
    }


def activator_network_policy_spec(service: str, operator_namespace: str) -> dict[str, Any]:
    """The activator reaches the engines of its service and name servers, and nobody else.

    Only the operator reaches the port on which it tells of requests.
    """
    return {
        "podSelector": {"matchLabels": selector_labels(service, ACTIVATOR)},
        "policyTypes": ["Egress", "Ingress"],
        "ingress": [
            {"ports": [_port(HTTP_PORT), _port(METRICS_PORT)]},
            {"from": [_operator(operator_namespace)], "ports": [_port(POLICY_PORT)]},
        ],
        "egress": _to_engines(service),
    }


def _operator(namespace: str) -> dict[str, Any]:
    return {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "podSelector": {"matchLabels": _OPERATOR_LABELS},
    }


def _to_engines(service: str) -> list[dict[str, Any]]:
    engines = {"podSelector": {"matchLabels": selector_labels(service)}}
    names = [{"port": port, "protocol": kind} for port in _DNS_PORTS for kind in ("TCP", "UDP")]
    return [
        {"to": [engines], "ports": [_port(HTTP_PORT), _port(METRICS_PORT)]},
        {"ports": names},
    ]


def _port(port: int) -> dict[str, Any]:
    return {"port": port, "protocol": "TCP"}
