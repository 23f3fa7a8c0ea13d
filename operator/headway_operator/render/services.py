"""Services: the names under which a service's pods are reached."""

from __future__ import annotations

from typing import Any

from headway_operator.render.names import HTTP_PORT, SERVICE_PORT, selector_labels


def service_spec(service: str, points_to: str) -> dict[str, Any]:
    """The Service clients talk to; engines and router listen on the same port."""
    port = {"name": "http", "port": SERVICE_PORT, "protocol": "TCP", "targetPort": HTTP_PORT}
    selector = selector_labels(service, points_to)
    return {"ports": [port], "selector": selector, "type": "ClusterIP"}


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
