"""What kopf watches for us, and how: records into the store, keys into the work queue.

Only ``on.event``, start-up and the probe are used: other kinds of handlers would add finalizers
and annotations to objects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import kopf

from headway_operator.api import GROUP, KIND, PLURAL, VERSION
from headway_operator.api.labels import COMPONENT_LABEL, MANAGED_SELECTOR, SERVICE_LABEL
from headway_operator.observe.cluster import Cluster
from headway_operator.observe.records import ServiceKey
from headway_operator.observe.trimming import child_record, pod_record, service_record
from headway_operator.patience import Logins, Pauses
from headway_operator.watch_storage import NoDiffBase, NoProgress

SERVICES = (GROUP, VERSION, PLURAL)
PODS = ("v1", "pods")
LEASES = ("coordination.k8s.io", "v1", "leases")
CHILDREN = (
    ("v1", "configmaps"),
    ("networking.k8s.io", "v1", "networkpolicies"),
    ("v1", "services"),
    ("policy", "v1", "poddisruptionbudgets"),
    ("apps", "v1", "deployments"),
)


@dataclass(frozen=True)
class Listener:
    """Who hears of what happens in the cluster.

    Attributes:
        changed: a service, or something that belongs to it, has changed.
        gone: an object is gone: its slot, the service it belonged to, and its uid.
        alive: a renewal of the operator's Lease came through the watch.
        check: raises if the operator is not alive.
        stopping: the operator is being stopped.
        relisted: a watch has begun anew, with a list; what was deleted meanwhile is not in it.
    """

    changed: Callable[[ServiceKey], None]
    gone: Callable[[str, ServiceKey, str], None]
    alive: Callable[[], None]
    check: Callable[[], None]
    stopping: Callable[[], None]
    relisted: Callable[[], None]


def watch_settings(lease_name: str) -> kopf.OperatorSettings:
    """How kopf behaves."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.persistence.progress_storage = NoProgress()
    settings.networking.connect_timeout = 10
    settings.networking.request_timeout = 60
    settings.networking.error_backoffs = Pauses()
    # A connection that died silently is noticed by one of these.
    settings.watching.connect_timeout = 10
    settings.watching.server_timeout = 240
    settings.watching.client_timeout = 300
    settings.watching.chunk_size = 500
    for kind in (*CHILDREN, PODS):
        settings.watching.label_selectors[kind] = MANAGED_SELECTOR
    settings.watching.field_selectors[LEASES] = f"metadata.name={lease_name}"
    return settings


def watch_registry(
    cluster: Cluster, listener: Listener, namespaces: tuple[str, ...]
) -> kopf.OperatorRegistry:
    """The handlers; services outside of the namespaces (if there are any) are not served."""
    registry = kopf.OperatorRegistry()
    _watch_services(registry, cluster, listener, namespaces)
    _watch_children(registry, cluster, listener)
    _watch_pods(registry, cluster, listener)
    _watch_ourselves(registry, listener)
    _watch_for_lists(registry, listener)

    def read_credentials(**given: Any) -> kopf.ConnectionInfo | None:
        in_pod = kopf.login_with_service_account(**given)
        return in_pod or kopf.login_with_kubeconfig(**given)

    logins = Logins(read_credentials)

    @kopf.on.login(id="login", registry=registry)
    async def login(**given: Any) -> kopf.ConnectionInfo | None:
        return await logins.next(**given)

    # Here, and not after kopf's end: kopf waits for all tasks that were started meanwhile.
    @kopf.on.cleanup(id="stop", registry=registry)
    async def stop(**_: Any) -> None:
        listener.stopping()

    return registry


def _watch_services(
    registry: kopf.OperatorRegistry,
    cluster: Cluster,
    listener: Listener,
    namespaces: tuple[str, ...],
) -> None:
    @kopf.on.event(*SERVICES, registry=registry)
    async def service_changed(event: kopf.RawEvent, **_: Any) -> None:
        record = service_record(event["object"])
        if namespaces and record.key.namespace not in namespaces:
            return
        if event["type"] == "DELETED":
            cluster.services.drop(record.uid)
            listener.gone(KIND, record.key, record.uid)
        else:
            cluster.services.put(record.key, record)
        listener.changed(record.key)


def _watch_children(registry: kopf.OperatorRegistry, cluster: Cluster, listener: Listener) -> None:
    async def child_changed(event: kopf.RawEvent, resource: kopf.Resource, **_: Any) -> None:
        record = child_record({"kind": resource.kind, **event["object"]})
        if event["type"] == "DELETED":
            cluster.children.drop(record.uid)
            listener.gone(record.slot, record.key, record.uid)
        else:
            cluster.children.put(record.key, record)
        listener.changed(record.key)

    for kind in CHILDREN:
        kopf.on.event(*kind, registry=registry)(child_changed)


def _watch_pods(registry: kopf.OperatorRegistry, cluster: Cluster, listener: Listener) -> None:
    @kopf.on.event(*PODS, registry=registry)
    async def pod_changed(event: kopf.RawEvent, labels: kopf.Labels, **_: Any) -> None:
        record = pod_record(event["object"])
        key = ServiceKey(record.namespace, labels.get(SERVICE_LABEL, ""))
        pods = cluster.pods_of(labels.get(COMPONENT_LABEL, ""))
        if event["type"] == "DELETED":
            pods.drop(record.uid)
        else:
            pods.put(key, record)
        listener.changed(key)


def _watch_for_lists(registry: kopf.OperatorRegistry, listener: Listener) -> None:
    """Kopf lists at the start, and where an API server does not know any more what we last saw."""

    async def listed(event: kopf.RawEvent, **_: Any) -> None:
        if event["type"] is None:
            listener.relisted()

    for kind in (SERVICES, PODS, *CHILDREN):
        kopf.on.event(*kind, registry=registry)(listed)


def _watch_ourselves(registry: kopf.OperatorRegistry, listener: Listener) -> None:
    @kopf.on.event(*LEASES, registry=registry)
    async def lease_renewed(**_: Any) -> None:
        listener.alive()

    @kopf.on.probe(id="watch", registry=registry)
    async def check(**_: Any) -> str:
        try:
            listener.check()
        except RuntimeError as error:
            raise kopf.PermanentError(str(error)) from None
        return "events are processed"
