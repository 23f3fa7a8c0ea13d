"""Labels, annotations and container names by which the objects of a service are recognised."""

from __future__ import annotations

from collections.abc import Mapping

SERVICE_LABEL = "headway.dev/service"
"""On every object of a service: the service's name."""

TEMPLATE_LABEL = "headway.dev/template"
"""On pods: hash of the template they were made from, so that a pod shows which spec it runs."""

APPLIED_HASH = "headway.dev/applied-hash"
"""Annotation: hash of the object as last applied; while it holds, nothing is written."""

TEMPLATE_INPUTS = "headway.dev/template-inputs"
"""Annotation of a Deployment: hash of what its pod template was made from."""

APPLIED_TEMPLATE = "headway.dev/applied-template"
"""Annotation of a Deployment: its pod template as it was made, as JSON."""

FIELD_MANAGER = "headway"

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED_SELECTOR = f"{MANAGED_BY}={FIELD_MANAGER}"

INSTALL = "install-runtime"
PREFLIGHT = "preflight"
SIDECAR = "headway-sidecar"
ENGINE = "engine"

POLICY_PORT = 8900
"""Port of the sidecar's policy API."""

METRICS_PORT = 8901
"""Port of the sidecar's probes and metrics."""

ROUTER_METRICS_PORT = 29000
"""Port of the router's metrics."""

DISCOVERY = "headway-discovery"
"""Container beside the router that tells it which engines there are."""


COMPONENT_LABEL = "app.kubernetes.io/component"
ENGINES = "engine"
ROUTER = "router"
ACTIVATOR = "activator"
"""Values of the component label: whose pods, and whose objects, they are."""

CHILD_KINDS = ("ConfigMap", "NetworkPolicy", "Service", "PodDisruptionBudget", "Deployment")
"""Kinds of a service's objects. There is one of each for the engines, and its slot has its name."""

ROUTER_SLOTS = tuple(
    f"{ROUTER} {kind}" for kind in ("NetworkPolicy", "Service", "PodDisruptionBudget", "Deployment")
)
"""Slots of the objects that a service has besides, while it has a router."""

ACTIVATOR_SLOTS = tuple(
    f"{ACTIVATOR} {kind}" for kind in ("NetworkPolicy", "PodDisruptionBudget", "Deployment")
)
"""Slots of the objects that a service has besides, while it may have no pods."""

ENGINES_SERVICE_SLOT = f"{ROUTER} Service"
"""Slot of the headless Service by which routers and activators find engines; it was the router's
alone once, and objects do not change their slot."""

CHILD_SLOTS = (*CHILD_KINDS, *ROUTER_SLOTS, *ACTIVATOR_SLOTS)

_SUFFIXES = {
    "ConfigMap": "-policy",
    # Headless: its name stands for the addresses of all engines.
    ENGINES_SERVICE_SLOT: "-engines",
    **{slot: "-router" for slot in ROUTER_SLOTS if slot != ENGINES_SERVICE_SLOT},
    **dict.fromkeys(ACTIVATOR_SLOTS, "-activator"),
}


def slot_of(kind: str, name: str, labels: Mapping[str, str]) -> str:
    """What an object is to its service: its kind, and whether it is the router's or activator's.

    Labels can be changed by anybody; the name alone is ambiguous.
    """
    slot = f"{labels.get(COMPONENT_LABEL)} {kind}"
    is_one = slot in ROUTER_SLOTS or slot in ACTIVATOR_SLOTS
    return slot if is_one and name.endswith(_SUFFIXES[slot]) else kind


def kind_of(slot: str) -> str:
    """Kind of the object in a slot."""
    return slot.rpartition(" ")[2]


def child_name(slot: str, service: str) -> str:
    """Name of a service's object in a slot; the ConfigMap holds baseline policy and keys."""
    return service + _SUFFIXES.get(slot, "")


def service_of(slot: str, name: str) -> str:
    """Name of the service that an object of that slot and name belongs to."""
    return name.removesuffix(_SUFFIXES.get(slot, ""))
