"""Probes: start-up takes as long as the model, readiness reacts in 2 s, liveness is patient.

Who died refuses connections, and that is an answer: time-outs are for who hangs. A server that is
busy, or starved by others on its node, answers late, and taking it out of service makes it worse
for those that are left.
"""

from __future__ import annotations

import math
from typing import Any

from headway_operator.api.labels import METRICS_PORT
from headway_operator.render.names import HTTP_PORT

_STARTUP_PERIOD_SECONDS = 2
_BUSY_SECONDS = 10
"""Seen: 4 s of an engine's only HTTP server on a GPU under a flood of short prompts, and 3 s and
more of a sidecar whose engine uses every core."""


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
        "readinessProbe": {
            **health,
            "periodSeconds": 1,
            "timeoutSeconds": _BUSY_SECONDS,
            "failureThreshold": 2,
        },
        # Only for an engine that hangs: one that died exits and is restarted without it.
        "livenessProbe": {
            **health,
            "periodSeconds": 10,
            "timeoutSeconds": _BUSY_SECONDS,
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
            "timeoutSeconds": _BUSY_SECONDS,
            "failureThreshold": 3,
        },
    }


def _get(path: str, port: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": port, "scheme": "HTTP"}}
