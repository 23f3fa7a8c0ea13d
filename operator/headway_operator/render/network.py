"""How a service's pods are reached, by whom, and how many may be away at once."""

from __future__ import annotations

from typing import Any

from headway_operator.api.labels import (
    ACTIVATOR,
    ENGINES,
    METRICS_PORT,
    POLICY_PORT,
    ROUTER,
    ROUTER_METRICS_PORT,
)
from headway_operator.render.names import HTTP_PORT, SERVICE_PORT, selector_labels

_OPERATOR_LABELS = {
    "app.kubernetes.io/name": "headway",
    "app.kubernetes.io/component": "operator",
}

_DNS_PORTS = (53, 5353)
"""Name servers listen on the first, or behind their Service on the second (OpenShift)."""


def service_spec(service: str, points_to: str) -> dict[str, Any]:
    """The Service clients talk to; engines and router listen on the same port."""
    port = {"name": "http", "port": SERVICE_PORT, "protocol": "TCP", "targetPort": HTTP_PORT}
    selector = selector_labels(service, points_to)
    return {"ports": [port], "selector": selector, "type": "ClusterIP"}


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


def engines_service_spec(service: str) -> dict[str, Any]:
    """The headless Service whose name stands for the addresses of all engines.

    Of those too that are not ready: the router asks each itself, which is sooner known.
    """
    return {
        "clusterIP": "None",
        "ports": [{"name": "http", "port": HTTP_PORT, "protocol": "TCP", "targetPort": HTTP_PORT}],
        "publishNotReadyAddresses": True,
        "selector": selector_labels(service),
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


def disruption_budget_spec(service: str, component: str = ENGINES) -> dict[str, Any]:
    """One pod at a time; one that is broken never blocks a node's drain."""
    return {
        "maxUnavailable": 1,
        "selector": {"matchLabels": selector_labels(service, component)},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
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
