"""Settings of the sidecar, from its environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headway_runtime.exchange import SOCKET_NAME


@dataclass(frozen=True)
class Settings:
    """How the sidecar runs.

    Attributes:
        run_dir: memory volume shared with the engine.
        policy_dir: the ConfigMap's directory: baseline policy and public keys.
        service_uid: uid of the InferenceService this pod belongs to.
        pod_uid: uid of this pod.
        policy_port: where policies come in; a NetworkPolicy keeps it for the operator.
        metrics_port: where probes and metrics are asked for.
        address: to listen on.
    """

    run_dir: Path
    policy_dir: Path
    service_uid: str
    pod_uid: str
    policy_port: int = 8900
    metrics_port: int = 8901
    address: str = "0.0.0.0"  # noqa: S104 - a pod's own network namespace

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Read the settings.

        Raises:
            KeyError: a variable without a default is missing.
            ValueError: a port is no number.
        """
        return cls(
            run_dir=Path(environment["HEADWAY_RUN_DIR"]),
            policy_dir=Path(environment["HEADWAY_POLICY_DIR"]),
            service_uid=environment["HEADWAY_SERVICE_UID"],
            pod_uid=environment["HEADWAY_POD_UID"],
            policy_port=int(environment.get("HEADWAY_POLICY_PORT", cls.policy_port)),
            metrics_port=int(environment.get("HEADWAY_METRICS_PORT", cls.metrics_port)),
        )

    @property
    def socket(self) -> Path:
        """The unix socket that the engine container's preStop talks to."""
        return self.run_dir / SOCKET_NAME
