"""What the process is told from outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headway_runtime.discovery.engine_watch import EnginesAt


@dataclass(frozen=True)
class Limits:
    """How much is held, and for how long.

    Attributes:
        requests: most requests at once; 0: none is held.
        body_bytes: most bytes of all their bodies together.
        hold_s: for how long, in seconds.
    """

    requests: int
    body_bytes: int
    hold_s: float


@dataclass(frozen=True)
class Settings:
    """Where things are, and the bounds.

    Attributes:
        engines: where the engines are.
        http_port: port for clients.
        control_port: port for the operator.
        metrics_port: port for probes and metrics.
        served_name: name of the model, told while no engine can.
        limits: of what is held.
        start_s: how long an engine is thought to take until it takes requests, in seconds, as long
            as none has been seen to.
        drain_s: how long a process that is being stopped may go on with its requests, in seconds.
    """

    engines: EnginesAt
    http_port: int
    control_port: int
    metrics_port: int
    served_name: str
    limits: Limits
    start_s: float
    drain_s: float

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> Settings:
        """Read the environment variables.

        Raises:
            KeyError: one is missing.
            ValueError: one that should be a number is none.
        """
        return cls(
            engines=EnginesAt(
                variables["HEADWAY_ENGINES_NAME"],
                int(variables["HEADWAY_ENGINE_PORT"]),
                int(variables["HEADWAY_READINESS_PORT"]),
            ),
            http_port=int(variables["HEADWAY_HTTP_PORT"]),
            control_port=int(variables["HEADWAY_CONTROL_PORT"]),
            metrics_port=int(variables["HEADWAY_METRICS_PORT"]),
            served_name=variables["HEADWAY_SERVED_NAME"],
            limits=Limits(
                int(variables["HEADWAY_HELD_REQUESTS"]),
                int(variables["HEADWAY_HELD_BYTES"]),
                float(variables["HEADWAY_HOLD_SECONDS"]),
            ),
            start_s=float(variables["HEADWAY_START_SECONDS"]),
            drain_s=float(variables["HEADWAY_DRAIN_SECONDS"]),
        )
