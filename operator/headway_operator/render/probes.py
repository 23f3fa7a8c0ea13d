"""Probes: start-up takes as long as the model, readiness reacts in 2 s, liveness is patient."""

from __future__ import annotations

import math
from typing import Any

from headway_operator.api.labels import METRICS_PORT
from headway_operator.render.names import HTTP_PORT

_STARTUP_PERIOD_SECONDS = 2


def engine_probes(startup_timeout_seconds: int) -> dict[str, Any]:
    """Probes of the engine; its /health is 503 as soon as an engine process died."""
    health = _get("/health", HTTP_PORT)
    return {
        "startupProbe": {
            **health,
            "periodSeconds": _STARTUP_PERIOD_SECONDS,
            "timeoutSeconds": 2,
            "failureThreshold": math.ceil(startup_timeout_seconds / _STARTUP_PERIOD_SECONDS),
        },
        # An engine that died is seen at once, by a refused connection or a 503; the time-out is for
        # one that hangs, and must not take a busy one out of service.
        "readinessProbe": {
            **health,
            "periodSeconds": 1,
            "timeoutSeconds": 5,
            "failureThreshold": 2,
        },
        # Only for an engine that hangs: one that died exits and is restarted without it.
        "livenessProbe": {
            **health,
            "periodSeconds": 10,
            "timeoutSeconds": 10,
            "failureThreshold": 6,
        },
    }


def sidecar_probes() -> dict[str, Any]:
    """Probes of the sidecar. Readiness outlasts the respawn of a killed server process."""
    return {
        "startupProbe": {
            **_get("/startedz", METRICS_PORT),
            "periodSeconds": 1,
            "timeoutSeconds": 3,
            "failureThreshold": 120,
        },
        "readinessProbe": {
            **_get("/readyz", METRICS_PORT),
            "periodSeconds": 1,
            "timeoutSeconds": 3,
            "failureThreshold": 3,
        },
    }


def _get(path: str, port: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": port, "scheme": "HTTP"}}
