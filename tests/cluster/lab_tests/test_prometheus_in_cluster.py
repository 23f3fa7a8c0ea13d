"""The lab's Prometheus against real pods: discovery, rights, rules, and a stop in between."""

import contextlib
import http.client
import json
import os
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.lab.addresses import NODE_ADDRESS, PROMETHEUS_PORT
from tests.cluster.lab.credentials import PROMETHEUS_USER
from tests.cluster.lab.paths import Paths
from tests.e2e import stack
from tests.e2e.kube import Cluster

pytestmark = pytest.mark.cluster

NAMESPACE = "lab-prometheus"
PORT = 8901
SERVER = f"""
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/metrics" else 404)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(b"lab_answers 1\\n")
http.server.ThreadingHTTPServer(("", {PORT}), Handler).serve_forever()
"""
PATIENCE_SECONDS = 60.0
RULE = "groups: [{name: lab, rules: [{alert: Answers, expr: lab_answers == 1}]}]"


class SilentError(Exception):
    """Prometheus does not answer."""


def call(method: str, path: str, **parameters: str) -> Any:
    """What Prometheus answers."""
    connection = http.client.HTTPConnection(NODE_ADDRESS, PROMETHEUS_PORT, timeout=10)
    try:
        connection.request(method, f"{path}?{urllib.parse.urlencode(parameters)}")
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise SilentError(f"{method} {path}: {error}") from error
    finally:
        connection.close()
    assert response.status == http.client.OK, body
    return json.loads(body)["data"] if body else {}


def eventually(what: Callable[[], Any]) -> Any:
    """The first result that is true; no answer is no result."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        with contextlib.suppress(SilentError):
            if result := what():
                return result
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.5)


def targets() -> list[dict[str, Any]]:
    found = call("GET", "/api/v1/targets", state="active")["activeTargets"]
    return [target for target in found if target["labels"]["namespace"] == NAMESPACE]


def healthy_targets() -> list[dict[str, Any]]:
    """All targets, if all of them answer."""
    found = targets()
    return found if all(target["health"] == "up" for target in found) else []


def query(expression: str, at: str = "") -> list[dict[str, Any]]:
    when = {"time": at} if at else {}
    result: list[dict[str, Any]] = call("GET", "/api/v1/query", query=expression, **when)["result"]
    return result


def pod(image: str) -> dict[str, Any]:
    """Like an engine's pod: an init container, a native sidecar that is asked, an idle engine."""
    idle = {"image": image, "command": ["sleep", "3600"]}
    policy_and_metrics = [{"containerPort": 8900}, {"containerPort": PORT}]
    sidecar = {
        "name": "sidecar",
        "image": image,
        "command": ["python3", "-c", SERVER],
        "restartPolicy": "Always",
        "ports": policy_and_metrics,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "chat-0",
            "namespace": NAMESPACE,
            "labels": {"headway.dev/service": "chat"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": str(PORT)},
        },
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "initContainers": [{**idle, "name": "install", "command": ["true"]}, sidecar],
            "containers": [
                {**idle, "name": "engine", "ports": [{"containerPort": 8000}]},
                {**idle, "name": "other"},
            ],
        },
    }


@pytest.fixture(scope="module")
def scraped_pod(cluster: Cluster) -> Iterator[Cluster]:
    image = json.loads(stack.lab("images", "--json"))["engine"]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(namespace))
    eventually(lambda: cluster.list("serviceaccount", NAMESPACE))
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(pod(image)))
    try:
        eventually(lambda: query(f'lab_answers{{namespace="{NAMESPACE}"}}'))
        yield cluster
    finally:
        cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found")


def test_prometheus_may_list_pods_and_nothing_else(cluster: Cluster) -> None:
    rights = cluster.kubectl(
        "auth", "can-i", "--list", "--no-headers", f"--as={PROMETHEUS_USER}", "-n", "kube-system"
    )
    resources = [line.split() for line in rights.splitlines() if not line.startswith(" ")]
    granted = {(line[0], line[-2].strip("[]"), line[-1].strip("[]")) for line in resources}
    assert ("pods", "list", "watch") in granted
    assert {name for name, *_ in granted if not name.endswith("k8s.io")} == {"pods"}


def test_a_pod_with_many_containers_and_ports_is_one_target(scraped_pod: Cluster) -> None:
    address = scraped_pod.get("pod", "chat-0", NAMESPACE)["status"]["podIP"]
    (target,) = eventually(healthy_targets)
    assert target["scrapeUrl"] == f"http://{address}:{PORT}/metrics"
    labels = target["labels"]
    assert (labels["pod"], labels["headway_service"]) == ("chat-0", "chat")


@pytest.mark.usefixtures("scraped_pod")
def test_prometheus_keeps_what_it_knew_over_a_stop() -> None:
    (newest,) = eventually(lambda: query(f'timestamp(lab_answers{{namespace="{NAMESPACE}"}})'))
    try:
        stack.lab("prometheus", "stop")
        with pytest.raises(SilentError):
            call("GET", "/api/v1/targets")
    finally:
        stack.lab("prometheus", "start")
    _, scraped = newest["value"]
    eventually(lambda: query("lab_answers", at=scraped))
    eventually(healthy_targets)


@pytest.mark.usefixtures("scraped_pod")
def test_a_file_of_rules_takes_effect_with_a_reload() -> None:
    rules = Paths.from_environment(os.environ).prometheus_rules / "lab-test.yaml"
    Path(rules).write_text(RULE)
    try:
        reload_rules()
        eventually(lambda: query('ALERTS{alertname="Answers",alertstate="firing"}'))
    finally:
        rules.unlink()
        reload_rules()


def reload_rules() -> None:
    eventually(lambda: call("POST", "/-/reload") is not None)


def test_series_of_a_pod_that_is_gone_end(scraped_pod: Cluster) -> None:
    scraped_pod.kubectl("delete", "pod", "chat-0", "-n", NAMESPACE, "--ignore-not-found")
    eventually(lambda: not query(f'lab_answers{{namespace="{NAMESPACE}"}}') and not targets())
