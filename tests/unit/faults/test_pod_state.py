"""A pod's state as the report tells it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults import pod_state


def pod(
    *containers: dict[str, Any], ready: str = "False", scheduled: str = "True", **metadata: Any
) -> dict[str, Any]:
    conditions = [
        {"type": "PodScheduled", "status": scheduled, "reason": "Unschedulable"},
        {"type": "Ready", "status": ready},
    ]
    status = {"phase": "Running", "conditions": conditions, "containerStatuses": list(containers)}
    return {"metadata": {"name": "chat-1", **metadata}, "status": status}


def engine(state: dict[str, Any], last: dict[str, Any] | None = None, **fields: Any) -> Any:
    found = {"name": "engine", "restartCount": 0, "started": False, "state": state}
    return {**found, "lastState": last or {}, **fields}


KILLED = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (pod(ready="True"), "ready"),
        (pod(ready="True", deletionTimestamp="2026-01-01T00:00:00Z"), "stopping"),
        (pod(scheduled="False"), "Pending, Unschedulable"),
        (pod(engine({"waiting": {"reason": "PodInitializing"}})), "starting"),
        (pod(engine({"running": {}})), "engine loads"),
        (pod(engine({"running": {}}, restartCount=2)), "engine loads for the 3. time"),
        (pod(engine({"running": {}}, started=True)), "engine runs, not ready"),
        (
            pod(engine({"waiting": {"reason": "CrashLoopBackOff"}}, KILLED)),
            "engine: CrashLoopBackOff (OOMKilled, exit code 137)",
        ),
        (pod(engine(KILLED)), "engine: ended (OOMKilled, exit code 137)"),
    ],
)
def test_a_state_is_told_in_a_few_words(found: dict[str, Any], told: str) -> None:
    assert pod_state.told(found) == told


def test_a_pod_that_is_being_stopped_is_not_ready() -> None:
    assert not pod_state.is_ready(pod(ready="True", deletionTimestamp="2026-01-01T00:00:00Z"))
