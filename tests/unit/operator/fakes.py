"""Stand-ins for the API server and for sidecars."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Self

from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio.client import ApiException
from kubernetes.aio.dynamic.exceptions import api_exception

from headway_operator.api.labels import child_name, kind_of
from headway_operator.observe.records import ChildRecord, ServiceKey
from headway_operator.observe.trimming import child_record


def api_error(status: int, body: Mapping[str, Any] | None = None) -> ApiException:
    """What the client raises for an answer of the API server."""
    error = ApiException(status=status, reason="made up")
    error.body = json.dumps(body or {})
    return api_exception(error)  # type: ignore[no-any-return]


class FakeCluster:
    """An API server with just enough behaviour: versions, conflicts, missing objects."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.writes: list[tuple[str, str]] = []
        self.fails: list[Exception] = []
        self.version = 100

    async def apply(self, body: Mapping[str, Any], subresource: str = "") -> dict[str, Any]:
        """Server-side apply, without merging."""
        name = f"{body['kind']}/{subresource}" if subresource else body["kind"]
        self._write("apply", name)
        self.version += 1
        metadata = {
            "uid": "u",
            "generation": 1,
            **body["metadata"],
            "resourceVersion": str(self.version),
        }
        stored = {**body, "metadata": metadata}
        self.objects[body["kind"], metadata["namespace"], metadata["name"]] = stored
        return stored

    async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """The object or None."""
        self._fail()
        return self.objects.get((kind, namespace, name))

    async def create(self, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create, or a conflict."""
        self._write("create", kind)
        metadata = body["metadata"]
        if (kind, metadata["namespace"], metadata["name"]) in self.objects:
            raise api_error(409)
        return self._store(kind, body)

    async def replace(self, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        """Replace, or a conflict if it has changed since it was read."""
        self._write("replace", kind)
        metadata = body["metadata"]
        live = self.objects[kind, metadata["namespace"], metadata["name"]]
        if live["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            raise api_error(409)
        return self._store(kind, body)

    async def merge(
        self, kind: str, namespace: str, name: str, patch: dict[str, Any]
    ) -> dict[str, Any]:
        """Merge, or not found."""
        self._write("merge", kind)
        if (kind, namespace, name) not in self.objects:
            raise api_error(404)
        return self._store(kind, {**self.objects[kind, namespace, name], **patch})

    async def read_child(self, slot: str, service: ServiceKey) -> ChildRecord | None:
        """As the real one."""
        kind = kind_of(slot)
        body = await self.get(kind, service.namespace, child_name(slot, service.name))
        return None if body is None else child_record({"kind": kind, **body}, slot)

    def _store(self, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        stored = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        self.objects[kind, body["metadata"]["namespace"], body["metadata"]["name"]] = stored
        return stored

    def _write(self, verb: str, kind: str) -> None:
        self._fail()
        self.writes.append((verb, kind))

    def _fail(self) -> None:
        if self.fails:
            raise self.fails.pop(0)


class FakeSidecar:
    """A sidecar's policy API on a free local port."""

    def __init__(
        self,
        answer: Any,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        pieces: int = 1,
    ) -> None:
        self.answer = answer
        self.status = status
        self.headers = headers
        self.pieces = pieces
        self.received: list[bytes] = []
        application = web.Application()
        application.router.add_put("/v1/policy", self._put)
        application.router.add_get("/v1/status", self._get)
        self.server = TestServer(application, host="127.0.0.1")

    async def __aenter__(self) -> Self:
        """Listen."""
        await self.server.start_server()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop."""
        await self.server.close()

    @property
    def port(self) -> int:
        """Where it listens."""
        port = self.server.port
        assert port is not None
        return port

    async def _put(self, request: web.Request) -> web.StreamResponse:
        self.received.append(await request.read())
        return await self._respond(request)

    async def _get(self, request: web.Request) -> web.StreamResponse:
        return await self._respond(request)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        answer = self.answer.pop(0) if isinstance(self.answer, list) else self.answer
        text = answer if isinstance(answer, str) else json.dumps(answer)
        response = web.StreamResponse(status=self.status, headers=self.headers)
        await response.prepare(request)
        size = len(text) // self.pieces + 1
        for start in range(0, len(text), size):
            await response.write(text[start : start + size].encode())
            await asyncio.sleep(0.02 if self.pieces > 1 else 0)
        return response
