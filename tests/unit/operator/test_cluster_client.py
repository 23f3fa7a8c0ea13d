from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio import client
from kubernetes.aio.client import ApiException

from headway_operator.act import cluster_client
from headway_operator.act.cluster_client import ClusterClient, DefinitionMissingError
from headway_operator.act.listing import WatchedObjects
from headway_operator.errors import told
from headway_operator.observe.records import ServiceKey
from tests.unit.operator.samples import applied, rendered

DEPLOYMENTS = "/apis/apps/v1/namespaces/team/deployments"


class FakeServer:
    """Answers by path, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Any]] = {}
        self.failures = 0
        self.requests: list[tuple[str, str, dict[str, str], str, str]] = []

    async def handle(self, request: web.Request) -> web.Response:
        text = await request.text()
        query = dict(request.query)
        kind = request.headers.get("Content-Type", "")
        self.requests.append((request.method, request.path, query, kind, text))
        if self.failures:
            self.failures -= 1
            return web.json_response({"kind": "Status", "code": 503}, status=503)
        answers = self.answers.get(request.path)
        if not answers:
            return web.json_response({"kind": "Status", "code": 404}, status=404)
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return web.json_response(answer)


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
async def connected(server: FakeServer) -> AsyncIterator[ClusterClient]:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.handle)
    async with TestServer(application, host="127.0.0.1") as listening:
        settings = client.Configuration(host=f"http://127.0.0.1:{listening.port}")
        async with ClusterClient(client.ApiClient(settings)) as made:
            yield made


async def test_apply_is_server_side_and_takes_fields_back(
    server: FakeServer, connected: ClusterClient
) -> None:
    body = rendered()["Deployment"]
    server.answers[f"{DEPLOYMENTS}/demo"] = [applied(body)]
    assert (await connected.apply(body))["metadata"]["resourceVersion"] == "20"
    ((method, path, query, kind, text),) = server.requests
    assert (method, path) == ("PATCH", f"{DEPLOYMENTS}/demo")
    assert query == {"fieldManager": "headway", "force": "true"}
    assert kind == "application/apply-patch+yaml"
    assert json.loads(text) == json.loads(json.dumps(body))


async def test_status_is_applied_to_the_subresource(
    server: FakeServer, connected: ClusterClient
) -> None:
    path = "/apis/headway.dev/v1alpha1/namespaces/team/inferenceservices/demo/status"
    server.answers[path] = [{}]
    metadata = {"namespace": "team", "name": "demo"}
    await connected.apply({"kind": "InferenceService", "metadata": metadata}, "status")
    assert server.requests[0][1] == path


async def test_missing_object_is_none(connected: ClusterClient) -> None:
    assert await connected.get("Deployment", "team", "demo") is None
    assert await connected.read_child("ConfigMap", ServiceKey("team", "demo")) is None


async def test_child_is_read_by_its_name(server: FakeServer, connected: ClusterClient) -> None:
    path = "/api/v1/namespaces/team/configmaps/demo-policy"
    server.answers[path] = [applied(rendered()["ConfigMap"])]
    found = await connected.read_child("ConfigMap", ServiceKey("team", "demo"))
    assert found is not None
    assert found.key == ServiceKey("team", "demo")


async def test_failure_is_an_exception(connected: ClusterClient) -> None:
    with pytest.raises(ApiException):
        await connected.create("Event", {"metadata": {"namespace": "team", "name": "e"}})
    with pytest.raises(ApiException):
        await connected.merge("Event", "team", "e", {})


def page(*uids: str, more: str = "") -> dict[str, Any]:
    items = [{"metadata": {"uid": uid}} for uid in uids]
    return {"items": items or None, "metadata": {"continue": more} if more else {}}


async def test_uids_are_listed_page_by_page(server: FakeServer, connected: ClusterClient) -> None:
    server.answers["/api/v1/pods"] = [page("a", more="next"), page("b")]
    assert await connected.list_uids("Pod", "x=y") == {"a", "b"}
    assert [query.get("continue") for _, _, query, _, _ in server.requests] == [None, "next"]
    assert server.requests[0][2]["labelSelector"] == "x=y"


async def test_everything_that_is_watched_is_listed(
    server: FakeServer, connected: ClusterClient
) -> None:
    kinds = {
        "/api/v1": ["configmaps", "services", "pods"],
        "/apis/apps/v1": ["deployments"],
        "/apis/policy/v1": ["poddisruptionbudgets"],
        "/apis/networking.k8s.io/v1": ["networkpolicies"],
        "/apis/headway.dev/v1alpha1": ["inferenceservices"],
    }
    for prefix, plurals in kinds.items():
        for plural in plurals:
            server.answers[f"{prefix}/namespaces/team/{plural}"] = [page(plural)]
    server.answers["/apis/headway.dev/v1alpha1/namespaces/team/inferenceservices"] = [page()]
    listed = await WatchedObjects(connected, ("team",)).list_uids()
    assert listed == {each for plurals in kinds.values() for each in plurals} - {
        "inferenceservices"
    }


async def test_failure_names_the_request(connected: ClusterClient) -> None:
    with pytest.raises(ApiException) as raised:
        await connected.create("Event", {"metadata": {"namespace": "team", "name": "e"}})
    assert told(raised.value) == "NotFoundError (POST /api/v1/namespaces/team/events)"


async def test_start_waits_for_an_api_server_that_is_away(
    server: FakeServer, connected: ClusterClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_client, "_DEFINITION_RETRY_SECONDS", 0)
    monkeypatch.setattr(cluster_client, "_DEFINITION_TRIES", 1)
    server.failures = 3
    server.answers["/apis/headway.dev/v1alpha1"] = [{}]
    await connected.wait_for_definition()
    assert len(server.requests) == 4


async def test_missing_definition_is_told(
    server: FakeServer, connected: ClusterClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_client, "_DEFINITION_RETRY_SECONDS", 0)
    with pytest.raises(DefinitionMissingError, match=r"inferenceservices\.headway\.dev"):
        await connected.wait_for_definition()
    server.answers["/apis/headway.dev/v1alpha1"] = [{}]
    await connected.wait_for_definition()
