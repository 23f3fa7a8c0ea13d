"""A metrics API for HorizontalPodAutoscalers: custom.metrics.k8s.io, served over TLS by the tests.

It stands where an adapter such as prometheus-adapter does: the API server passes requests of the
HPA's controller on to it (an APIService). It tells one metric of pods.
"""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import json
import re
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.cluster.lab.addresses import NODE_ADDRESS
from tests.cluster.lab.certificates import Authority
from tests.e2e.kube import Cluster

GROUP, VERSION = "custom.metrics.k8s.io", "v1beta2"
METRIC = "headway_token_load_ratio"

_NAME = "custom-metrics"
_PORT = "https"
_ROOT = f"/apis/{GROUP}/{VERSION}"
_OF_PODS = re.compile(rf"{_ROOT}/namespaces/([^/]+)/pods/\*/{METRIC}")

Values = Callable[[str, str], Mapping[str, float]]
"""The metric of each pod that a selector selects in a namespace, by name."""


@dataclass
class Metrics:
    """What is told, and what was asked.

    Attributes:
        values: of the pods.
        selectors: label selectors that were asked for.
    """

    values: Values
    selectors: set[str] = field(default_factory=set)

    def answer(self, url: str) -> dict[str, Any] | None:
        """The answer to a GET; None where there is nothing."""
        parts = urlsplit(url)
        path = unquote(parts.path)
        if path == _ROOT:
            return _resources()
        asked = _OF_PODS.fullmatch(path)
        if asked is None:
            return None
        (selector,) = parse_qs(parts.query).get("labelSelector", [""])
        self.selectors.add(selector)
        (namespace,) = asked.groups()
        return _told(namespace, self.values(namespace, selector))


@contextlib.contextmanager
def served(cluster: Cluster, namespace: str, metrics: Metrics) -> Iterator[None]:
    """The API is there; afterwards it is gone, so that nobody waits for it."""
    authority = Authority()
    pair = authority.issue(_NAME, hosts=[f"{_NAME}.{namespace}.svc"])
    with tempfile.TemporaryDirectory() as folder:
        pair.write(Path(folder), _NAME)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(Path(folder, f"{_NAME}.crt"), Path(folder, f"{_NAME}.key"))
    server = ThreadingHTTPServer((NODE_ADDRESS, 0), _handler(metrics))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    api = _api_service(namespace, authority.pair.certificate)
    try:
        for each in (*_service(server.server_port), api):
            cluster.kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(each))
        name = api["metadata"]["name"]
        cluster.kubectl("wait", "apiservice", name, "--for=condition=Available", "--timeout=60s")
        yield
    finally:
        cluster.kubectl("delete", "apiservice", api["metadata"]["name"], "--ignore-not-found")
        cluster.kubectl("delete", "service", _NAME, "-n", namespace, "--ignore-not-found")
        cluster.kubectl("delete", "endpointslice", _NAME, "-n", namespace, "--ignore-not-found")
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(metrics: Metrics) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found = metrics.answer(self.path)
            body = json.dumps(found).encode()
            self.send_response(HTTPStatus.OK if found is not None else HTTPStatus.NOT_FOUND)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    return Handler


def _resources() -> dict[str, Any]:
    metric = {
        "name": f"pods/{METRIC}",
        "singularName": "",
        "namespaced": True,
        "kind": "MetricValueList",
        "verbs": ["get"],
    }
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{GROUP}/{VERSION}",
        "resources": [metric],
    }


def _told(namespace: str, values: Mapping[str, float]) -> dict[str, Any]:
    now = dt.datetime.now(tz=dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "kind": "MetricValueList",
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": {},
        "items": [
            {
                "describedObject": {
                    "kind": "Pod",
                    "apiVersion": "v1",
                    "namespace": namespace,
                    "name": name,
                },
                "metric": {"name": METRIC},
                "timestamp": now,
                "value": f"{round(1000 * value)}m",
            }
            for name, value in values.items()
        ],
    }


def _service(port: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A Service that points to this process."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": _NAME},
        "spec": {"ports": [{"name": _PORT, "port": 443, "targetPort": port}]},
    }
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": _NAME, "labels": {"kubernetes.io/service-name": _NAME}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [NODE_ADDRESS], "conditions": {"ready": True}}],
        "ports": [{"name": _PORT, "port": port, "protocol": "TCP"}],
    }
    return service, endpoints


def _api_service(namespace: str, certificate: bytes) -> dict[str, Any]:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{VERSION}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "version": VERSION,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "caBundle": base64.b64encode(certificate).decode(),
            "service": {"name": _NAME, "namespace": namespace, "port": 443},
        },
    }
