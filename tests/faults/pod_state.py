"""A pod in a few words, as a person would tell what is the matter with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ENGINE = "engine"


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether it takes requests."""
    return _condition(pod, "Ready").get("status") == "True" and not is_stopping(pod)


def is_stopping(pod: Mapping[str, Any]) -> bool:
    """Whether it was deleted and is not gone yet."""
    return "deletionTimestamp" in pod["metadata"]


def engine_restarts(pod: Mapping[str, Any]) -> int:
    """How often its engine was started anew."""
    return sum(each["restartCount"] for each in _containers(pod) if each["name"] == ENGINE)


def told(pod: Mapping[str, Any]) -> str:
    """Its state: ready, stopping, or what it waits for."""
    if is_stopping(pod):
        return "stopping"
    if is_ready(pod):
        return "ready"
    phase = str(pod["status"].get("phase", "Unknown"))
    if phase in {"Failed", "Succeeded"}:
        return f"{phase} ({pod['status'].get('reason', '')})".replace(" ()", "")
    scheduled = _condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        return f"Pending, {scheduled.get('reason', '')}"
    return next((text for each in _containers(pod) if (text := _trouble(each))), "starting")


def _trouble(status: Mapping[str, Any]) -> str:
    """What a container waits for or how it ended; empty where it is on its way."""
    name, state = status["name"], status.get("state", {})
    waiting = state.get("waiting", {}).get("reason", "")
    if waiting not in {"", "PodInitializing", "ContainerCreating"}:
        return f"{name}: {waiting}{_ended(status.get('lastState', {}))}"
    if state.get("terminated", {}).get("exitCode", 0) != 0:
        return f"{name}: ended{_ended(state)}"
    if status["name"] == ENGINE and "running" in state:
        again = f" for the {status['restartCount'] + 1}. time" if status["restartCount"] else ""
        was_up = status.get("started") or status.get("ready")
        return "engine runs, not ready" if was_up else f"engine loads{again}"
    return ""


def _ended(state: Mapping[str, Any]) -> str:
    ended = state.get("terminated")
    return f" ({ended.get('reason', '')}, exit code {ended['exitCode']})" if ended else ""


def _containers(pod: Mapping[str, Any]) -> list[dict[str, Any]]:
    status = pod["status"]
    return [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]


def _condition(pod: Mapping[str, Any], kind: str) -> dict[str, Any]:
    found = pod["status"].get("conditions", [])
    return next((dict(each) for each in found if each["type"] == kind), {})
