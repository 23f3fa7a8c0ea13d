"""Where the lab keeps things: a cache that outlives clusters, and a state that dies with one."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CLUSTER_DIRECTORY = Path(__file__).resolve().parent.parent
REPOSITORY = CLUSTER_DIRECTORY.parent.parent


@dataclass(frozen=True)
class Paths:
    """Every path of the lab, derived from two roots."""

    cache: Path  # HEADWAY_CACHE: built tools, image layers, engine environment, model
    state: Path  # HEADWAY_STATE: everything that belongs to the running cluster

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Paths":
        """Read both roots from the environment, else take the defaults."""
        return cls(
            cache=Path(environment.get("HEADWAY_CACHE", "/var/cache/headway")).absolute(),
            state=Path(environment.get("HEADWAY_STATE", "/var/lib/headway-lab")).absolute(),
        )

    @property
    def bin(self) -> Path:
        """Stable names of the built tools; this is what goes on PATH."""
        return self.cache / "bin"

    @property
    def engine(self) -> Path:
        """Stable name of the newest engine environment (a symbolic link)."""
        return self.cache / "engine"

    @property
    def models(self) -> Path:
        """Stable name of the directory that holds the model (a symbolic link)."""
        return self.cache / "models"

    @property
    def locks(self) -> Path:
        """Lock files, outside the state so that `down` can remove all of the state."""
        return self.cache / ".locks"

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the cluster's administrator."""
        return self.state / "admin.kubeconfig"

    @property
    def pki(self) -> Path:
        """Certificates and keys."""
        return self.state / "pki"

    @property
    def config(self) -> Path:
        """Configuration files of the components."""
        return self.state / "config"

    @property
    def logs(self) -> Path:
        """One log file per component."""
        return self.state / "logs"

    @property
    def audit_log(self) -> Path:
        """The API server's audit log: one JSON object a line, write verbs only."""
        return self.state / "audit" / "audit.log"

    @property
    def prometheus(self) -> Path:
        """Prometheus' data and rules."""
        return self.state / "prometheus"

    @property
    def prometheus_rules(self) -> Path:
        """Where Prometheus looks for files of rules, *.yaml; empty at first."""
        return self.prometheus / "rules"

    @property
    def containerd(self) -> Path:
        """The container runtime's root, state, socket and network plug-in configuration."""
        return self.state / "containerd"

    @property
    def containerd_socket(self) -> Path:
        """Where containerd listens."""
        return self.containerd / "containerd.sock"

    @property
    def kubelet(self) -> Path:
        """The kubelet's root: volumes of pods are mounted below it."""
        return self.state / "kubelet"
