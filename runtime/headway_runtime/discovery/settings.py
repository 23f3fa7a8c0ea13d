"""What the process is told from outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Where things are.

    Attributes:
        engines_name: DNS name that stands for the addresses of all engines.
        engine_port: port on which they take requests.
        readiness_port: port on which their sidecars say whether they are being stopped.
        router_url: of the router's HTTP interface.
    """

    engines_name: str
    engine_port: int
    readiness_port: int
    router_url: str

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> Settings:
        """Read the environment variables.

        Raises:
            KeyError: one is missing.
            ValueError: a port is no number.
        """
        return cls(
            engines_name=variables["HEADWAY_ENGINES_NAME"],
            engine_port=int(variables["HEADWAY_ENGINE_PORT"]),
            readiness_port=int(variables["HEADWAY_READINESS_PORT"]),
            router_url=variables["HEADWAY_ROUTER_URL"].rstrip("/"),
        )
