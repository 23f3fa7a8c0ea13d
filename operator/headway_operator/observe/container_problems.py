"""Why a container does not run: from its state."""

from __future__ import annotations

import re

from headway_operator.api.labels import (
    ACTIVATOR,
    DISCOVERY,
    ENGINE,
    INSTALL,
    PREFLIGHT,
    ROUTER,
    SIDECAR,
)
from headway_operator.observe.findings import engine_problem, preflight_problem
from headway_operator.observe.problems import STALLS_AFTER_RESTARTS, Problem, Tier, shown
from headway_operator.observe.records import ContainerRecord, Terminated

_IMAGE_REASONS = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
    }
)
_ABSENT = re.compile(r"not found|manifest unknown|does not exist", re.IGNORECASE)
_DENIED = re.compile(r"unauthorized|denied|authentication required|forbidden", re.IGNORECASE)

_MISSING_OBJECT = re.compile(r'\b(secret|configmap) "([^"]{1,253})" not found')
_MISSING_KEY = re.compile(
    r"couldn't find key (\S{1,253}) in (Secret|ConfigMap) \S{1,253}/(\S{1,253})"
)
_KINDS = {"secret": "Secret", "configmap": "ConfigMap"}

_CRASHES = {
    ENGINE: ("EngineCrashed", "The engine"),
    PREFLIGHT: ("PreflightFailed", "The preflight check"),
    INSTALL: ("RuntimeInstallFailed", "The installation of Headway's runtime"),
    SIDECAR: ("SidecarCrashed", "The sidecar"),
    ROUTER: ("RouterCrashed", "The router"),
    ACTIVATOR: ("ActivatorCrashed", "The activator"),
    DISCOVERY: ("DiscoveryCrashed", "The discovery of engines"),
}

_SIZED_BY_USERS = (ENGINE, ROUTER)
"""Containers with resources in the spec, under their own name."""

_SERVED_SECONDS = 300.0
"""A run that ended so long after its start-up must have been over had served."""


def fails_repeatedly(container: ContainerRecord, restarts: int) -> bool:
    """Whether it was restarted so often, and its last run ended before it had served for long.

    Kubernetes counts restarts over a container's whole life. An engine that served for weeks and
    ends is one that ended once, whatever happened to it months ago; Kubernetes keeps how long the
    last run was, so that another operator judges alike.
    """
    ended = container.terminated or container.last_terminated
    served = ended is not None and ended.ran_seconds > container.startup_seconds + _SERVED_SECONDS
    return container.restarts >= restarts and not served


def container_problem(container: ContainerRecord) -> Problem | None:
    """What keeps one container from running, or None."""
    waiting = container.waiting
    if waiting is not None and waiting.reason in _IMAGE_REASONS:
        return _image_problem(container, waiting.reason, waiting.message)
    if waiting is not None and waiting.reason == "CreateContainerConfigError":
        return _configuration_problem(container, waiting.message)
    if waiting is not None and waiting.reason in {"CreateContainerError", "RunContainerError"}:
        return _start_problem(container)
    ended = _last_end(container)
    return None if ended is None else _end_problem(container, ended)


def _last_end(container: ContainerRecord) -> Terminated | None:
    """How its last run ended, until a later run gets through its start-up.

    Between two crashes the container runs for a while; forgetting the crash then would make
    the reason flap.
    """
    if container.started:
        return None
    ended = container.terminated or container.last_terminated
    finished = container.terminated is not None and container.terminated.exit_code == 0
    if finished and container.name != ENGINE:
        return None
    return ended


def _image_problem(container: ContainerRecord, reason: str, message: str) -> Problem:
    image = shown("image", container.image)
    subject = f"Image {image} of container {shown('name', container.name)}"
    if reason == "InvalidImageName":
        text = f"{subject} is no valid image name: correct it"
        return Problem("InvalidImageName", text, Tier.BAD_DATA, stalls=True)
    if reason == "ErrImageNeverPull":
        text = f"{subject} is not on the node and imagePullPolicy is Never"
        return Problem("ImageNotPresent", text, Tier.BAD_DATA, stalls=True)
    if _DENIED.search(message):
        text = f"{subject}: the registry denies access. Check the name and engine.imagePullSecrets"
        return Problem("ImagePullDenied", text, Tier.BAD_DATA, stalls=True)
    if _ABSENT.search(message):
        text = f"{subject} does not exist in the registry: correct it"
        return Problem("ImageNotFound", text, Tier.BAD_DATA, stalls=True)
    return Problem("ImagePullFailed", f"{subject} cannot be pulled", Tier.TEMPORARY, stalls=False)


def _configuration_problem(container: ContainerRecord, message: str) -> Problem:
    missing, key = _MISSING_OBJECT.search(message), _MISSING_KEY.search(message)
    if missing:
        what = f"{_KINDS[missing[1]]} {shown('name', missing[2])} does not exist"
    elif key:
        what = f"{key[2]} {shown('name', key[3])} has no key {shown('key', key[1])}"
    else:
        name = shown("name", container.name)
        text = f"Container {name} cannot be configured: `kubectl describe pod` says why"
        return Problem("ContainerConfigInvalid", text, Tier.BAD_DATA, stalls=True)
    text = f"{what}: create it or correct the reference"
    return Problem("ReferenceNotFound", text, Tier.BAD_DATA, stalls=True)


def _start_problem(container: ContainerRecord) -> Problem:
    name = shown("name", container.name)
    text = f"Container {name} cannot be started: `kubectl describe pod` says why"
    stalls = fails_repeatedly(container, STALLS_AFTER_RESTARTS)
    return Problem("ContainerCannotStart", text, Tier.SYSTEM, stalls=stalls)


def _end_problem(container: ContainerRecord, ended: Terminated) -> Problem:
    stalls = fails_repeatedly(container, STALLS_AFTER_RESTARTS)
    # The reason, not the exit code: a parent that lost a child to the OOM killer exits as it likes.
    if ended.reason == "OOMKilled":
        return _out_of_memory(container, stalls=stalls)
    finding = _finding(container, ended, stalls=stalls)
    if finding is not None:
        return finding
    reason, subject = _CRASHES.get(container.name, ("ContainerCrashed", "A container"))
    logs = f"kubectl logs --previous -c {shown('name', container.name)}"
    text = f"{subject} exited with code {ended.exit_code}: `{logs}` says why"
    return Problem(reason, text, Tier.SYSTEM, stalls=stalls)


def _finding(container: ContainerRecord, ended: Terminated, *, stalls: bool) -> Problem | None:
    """What the container itself says about its end."""
    if container.name == PREFLIGHT:
        return preflight_problem(ended.message)
    return engine_problem(ended.message, stalls=stalls) if container.name == ENGINE else None


def _out_of_memory(container: ContainerRecord, *, stalls: bool) -> Problem:
    name, limit = shown("name", container.name), shown("quantity", container.memory_limit)
    part = container.name
    remedy = f"raise {part}.resources.limits.memory" if part in _SIZED_BY_USERS else "report it"
    text = f"Container {name} was killed for exceeding its memory limit of {limit}: {remedy}"
    return Problem("OOMKilled", text, Tier.RESOURCE, stalls=stalls)
