"""Changes of a service's spec that keep what else is in it."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e import stack
from tests.e2e.service import Service


def add_env(service: Service, *variables: dict[str, Any]) -> None:
    """Add environment variables to the engine's, in the place of those of the same name."""
    found = service.read()["spec"]["engine"]["env"]
    # In their place: another order is another pod template, and another engine's start.
    new = {each["name"]: each for each in found} | {each["name"]: each for each in variables}
    service.patch({"spec": {"engine": {"env": list(new.values())}}})


def remove_env(service: Service, *names: str) -> None:
    """Remove environment variables from the engine's."""
    kept = [each for each in service.read()["spec"]["engine"]["env"] if each["name"] not in names]
    service.patch({"spec": {"engine": {"env": kept}}})


def gpus(count: int) -> None:
    """Have the node offer that many."""
    stack.lab("fake-gpus", str(count))


def create(service: Service, *documents: dict[str, Any]) -> None:
    """Create objects in the service's namespace."""
    for each in documents:
        service.cluster.apply(json.dumps(each), service.namespace)


def delete(service: Service, kind: str, name: str) -> None:
    """Delete an object of the service's namespace."""
    service.cluster.kubectl("delete", kind, name, "-n", service.namespace, "--ignore-not-found")
