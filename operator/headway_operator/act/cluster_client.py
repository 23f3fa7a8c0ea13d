"""The Kubernetes API as the operator uses it: a few verbs on a few kinds."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp
from kubernetes.aio import client, config
from kubernetes.aio.client import ApiException
from kubernetes.aio.dynamic import DynamicClient
from kubernetes.aio.dynamic.exceptions import NotFoundError
from kubernetes.aio.dynamic.resource import Resource

from headway_operator.api import GROUP, KIND, PLURAL, VERSION
from headway_operator.api.labels import FIELD_MANAGER, child_name, kind_of
from headway_operator.errors import told
from headway_operator.observe.records import ChildRecord, ServiceKey
from headway_operator.observe.trimming import child_record

Object = dict[str, Any]

_TIMEOUT_SECONDS = 10
_CONNECTIONS = 64
_PAGE = 500
_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_DEFINITION_TRIES = 30
_DEFINITION_RETRY_SECONDS = 2

# Group, version and plural of every kind. They are fixed, so nothing has to be discovered.
_KINDS: Mapping[str, tuple[str, str, str]] = {
    "ConfigMap": ("", "v1", "configmaps"),
    "Deployment": ("apps", "v1", "deployments"),
    "Event": ("", "v1", "events"),
    KIND: (GROUP, VERSION, PLURAL),
    "Lease": ("coordination.k8s.io", "v1", "leases"),
    "NetworkPolicy": ("networking.k8s.io", "v1", "networkpolicies"),
    "Pod": ("", "v1", "pods"),
    "PodDisruptionBudget": ("policy", "v1", "poddisruptionbudgets"),
    "Service": ("", "v1", "services"),
}


logger = logging.getLogger(__name__)


class DefinitionMissingError(Exception):
    """The custom resource is not installed."""


class ClusterClient:
    """Talks to the API server. Methods raise ``kubernetes.aio.client.ApiException``."""

    def __init__(self, api_client: client.ApiClient) -> None:
        self._api_client = api_client
        self._dynamic = DynamicClient(api_client)
        self._resources = {kind: self._resource(kind) for kind in _KINDS}

    @classmethod
    async def connect(cls) -> Self:
        """A client with the pod's own credentials, or those of a kubeconfig outside of pods."""
        settings = client.Configuration()
        if "KUBERNETES_SERVICE_HOST" in os.environ:
            config.load_incluster_config(settings)
        else:
            await config.load_kube_config(client_configuration=settings)
        settings.connection_pool_maxsize = _CONNECTIONS
        return cls(client.ApiClient(settings))

    async def __aenter__(self) -> Self:
        """Nothing is opened before the first request."""
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Close all connections."""
        await self._api_client.close()

    async def apply(self, body: Mapping[str, Any], subresource: str = "") -> Object:
        """Server-side apply; takes fields back from whoever took them. Returns the object."""
        kind, metadata = body["kind"], body["metadata"]
        path = self._path(kind, metadata["namespace"], metadata["name"], subresource)
        return await self._request(
            "patch",
            path,
            body=dict(body),
            content_type="application/apply-patch+yaml",
            field_manager=FIELD_MANAGER,
            force_conflicts=True,
        )

    async def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """The object, or None if there is none."""
        try:
            return await self._request("get", self._path(kind, namespace, name))
        except NotFoundError:
            return None

    async def list_uids(self, kind: str, selector: str, namespace: str | None = None) -> set[str]:
        """Uids of all objects of a kind; everything else is left out by the API server."""
        path: str = self._resources[kind].path(namespace=namespace)
        uids: set[str] = set()
        token: str | None = None
        while token != "":
            page = await self._request(
                "get",
                path,
                label_selector=selector or None,
                limit=_PAGE,
                _continue=token,
                header_params={"Accept": _METADATA_ONLY},
            )
            # An empty list may come as null.
            uids |= {item["metadata"]["uid"] for item in page.get("items") or ()}
            token = page["metadata"].get("continue") or ""
        return uids

    async def create(self, kind: str, body: Object) -> Object:
        """Create an object."""
        return await self._request(
            "post", self._path(kind, body["metadata"]["namespace"]), body=body
        )

    async def replace(self, kind: str, body: Object) -> Object:
        """Replace an object; refused as a conflict if it has changed since it was read."""
        metadata = body["metadata"]
        path = self._path(kind, metadata["namespace"], metadata["name"])
        return await self._request("put", path, body=body)

    async def merge(self, kind: str, namespace: str, name: str, patch: Object) -> Object:
        """Merge fields into an object."""
        path = self._path(kind, namespace, name)
        content_type = "application/merge-patch+json"
        return await self._request("patch", path, body=patch, content_type=content_type)

    async def read_child(self, slot: str, service: ServiceKey) -> ChildRecord | None:
        """The object that has the service's name for that slot; None if there is none."""
        kind = kind_of(slot)
        body = await self.get(kind, service.namespace, child_name(slot, service.name))
        return None if body is None else child_record({"kind": kind, **body}, slot)

    async def wait_for_definition(self) -> None:
        """Wait until the custom resource is served: it may be installed along with the operator.

        Raises:
            DefinitionMissingError: it is not installed.
        """
        tries = 0
        while tries < _DEFINITION_TRIES:
            try:
                if await self._serves_definition():
                    return
                tries += 1
            except (ApiException, aiohttp.ClientError, TimeoutError) as error:
                # Ending would only lead to restarts with ever longer pauses between them.
                logger.warning("The API server does not answer: %s", told(error))
            await asyncio.sleep(_DEFINITION_RETRY_SECONDS)
        raise DefinitionMissingError(
            f"CustomResourceDefinition {PLURAL}.{GROUP} is not installed: "
            "install the Helm chart or apply its crds"
        )

    async def _serves_definition(self) -> bool:
        try:
            await self._request("get", f"/apis/{GROUP}/{VERSION}")
        except NotFoundError:
            return False
        return True

    async def _request(self, method: str, path: str, **options: Any) -> Object:
        try:
            response = await self._dynamic.request(
                method, path, serialize=False, _request_timeout=_TIMEOUT_SECONDS, **options
            )
            answer: Object = await response.json()
        except (ApiException, aiohttp.ClientError, TimeoutError) as error:
            error.add_note(f"({method.upper()} {path})")
            raise
        return answer

    def _resource(self, kind: str) -> Resource:
        group, version, plural = _KINDS[kind]
        return Resource(
            prefix="apis" if group else "api",
            group=group,
            api_version=version,
            kind=kind,
            name=plural,
            namespaced=True,
            client=self._dynamic,
        )

    def _path(self, kind: str, namespace: str, name: str = "", subresource: str = "") -> str:
        path: str = self._resources[kind].path(name=name or None, namespace=namespace)
        return f"{path}/{subresource}" if subresource else path
