"""An API server on loopback with what kopf asks of one: discovery, lists and watches over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any, Self

import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from headway_operator.api import GROUP, KIND, PLURAL, VERSION
from headway_operator.api.labels import CHILD_KINDS
from headway_operator.watching import CHILDREN, LEASES, PODS, SERVICES

_KINDS = {each.lower() + "s": each for each in (*CHILD_KINDS, "Pod", "Lease", KIND)}
_KINDS |= {
    "networkpolicies": "NetworkPolicy",
    "namespaces": "Namespace",
    "customresourcedefinitions": "CustomResourceDefinition",
}

_KNOWN_TO_KOPF = (
    ("v1", "namespaces"),
    ("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
)
"""It waits until these are served."""


def _resources() -> dict[tuple[str, str], list[str]]:
    """Plurals by group and version."""
    found: dict[tuple[str, str], list[str]] = {}
    for kind in (SERVICES, LEASES, PODS, *CHILDREN, *_KNOWN_TO_KOPF):
        group, version, plural = kind if len(kind) == 3 else ("", *kind)
        found.setdefault((group, version), []).append(plural)
    return found


class ApiServer:
    """Answers as it is told.

    Attributes:
        status: of each answer; with 200 it works.
        services: InferenceServices by name.
        unserved: API groups that it does not know yet.
        asked: how often it was asked, by method and path, since it answers with this status.
        watches: the open ones, as events that are still to be sent.
    """

    def __init__(self) -> None:
        self.status = 200
        self.services: dict[str, dict[str, Any]] = {}
        self.unserved: set[str] = set()
        self.asked: Counter[str] = Counter()
        self.version = 100
        self.watches: set[asyncio.Queue[dict[str, Any] | None]] = set()
        self._resources = _resources()
        application = web.Application()
        application.router.add_get("/{path:.*}", self._answer)
        self.server = TestServer(application, host="127.0.0.1")

    async def __aenter__(self) -> Self:
        await self.server.start_server()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.answers(503)
        await self.server.close()

    def kubeconfig(self, folder: Path) -> str:
        """Path of a kubeconfig for it."""
        file = folder / "kubeconfig"
        cluster = {"server": f"http://127.0.0.1:{self.server.port}"}
        file.write_text(
            yaml.safe_dump(
                {
                    "current-context": "a",
                    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
                    "clusters": [{"name": "a", "cluster": cluster}],
                    "users": [{"name": "a", "user": {"token": "t"}}],
                }
            )
        )
        return str(file)

    def answers(self, status: int) -> None:
        """From now on; open watches end."""
        self.status = status
        self.asked.clear()
        for each in self.watches:
            each.put_nowait(None)

    def put(self, name: str) -> None:
        """A service is made, or changed."""
        kind = "MODIFIED" if name in self.services else "ADDED"
        self.version += 1
        metadata = {
            "namespace": "team",
            "name": name,
            "uid": f"uid-of-{name}",
            "generation": 1,
            "resourceVersion": str(self.version),
        }
        body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": metadata, "spec": {}}
        self.services[name] = body
        self.tell({"type": kind, "object": body})

    def tell(self, event: dict[str, Any]) -> None:
        """Send an event to who watches services."""
        for each in self.watches:
            each.put_nowait(event)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked[f"{request.method} {request.path}"] += 1
        if self.status != 200:
            return web.json_response({"kind": "Status"}, status=self.status)
        parts = request.path.strip("/").split("/")
        if parts == ["api"]:
            return web.json_response({"versions": ["v1"]})
        if parts == ["apis"]:
            return web.json_response({"groups": self._groups()})
        group, version, *plural = parts[1:] if parts[0] == "apis" else ("", *parts[1:])
        if not plural:
            return web.json_response({"resources": self._described(group, version)})
        if "watch" in request.query:
            return await self._watched(request, plural[-1])
        items = list(self.services.values()) if plural[-1] == PLURAL else []
        listed = {"metadata": {"resourceVersion": str(self.version)}, "items": items}
        return web.json_response({"kind": f"{_KINDS[plural[-1]]}List", **listed})

    def _groups(self) -> list[dict[str, Any]]:
        return [
            {"name": group, "versions": [{"version": v}], "preferredVersion": {"version": v}}
            for group, v in self._resources
            if group and group not in self.unserved
        ]

    def _described(self, group: str, version: str) -> list[dict[str, Any]]:
        more = {"singularName": "", "namespaced": True, "verbs": ["list", "watch", "get", "patch"]}
        plurals = self._resources[group, version]
        return [{"name": each, "kind": _KINDS[each], **more} for each in plurals]

    async def _watched(self, request: web.Request, plural: str) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        events: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self.watches.add(events)
        known = int(request.query.get("resourceVersion", 0))
        for body in self.services.values():
            if int(body["metadata"]["resourceVersion"]) > known:
                events.put_nowait({"type": "ADDED", "object": body})
        try:
            while (event := await events.get()) is not None:
                if plural == PLURAL:
                    await response.write(json.dumps(event).encode() + b"\n")
        finally:
            self.watches.discard(events)
        return response
