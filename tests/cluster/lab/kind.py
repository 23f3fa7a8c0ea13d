"""The cluster where there is Docker: kind runs Kubernetes in a container.

NOT RUN YET. What it must do is what NativeCluster does, without Prometheus and fake nodes: pods'
addresses mean something inside kind's container only, so a Prometheus outside reaches none of them.
"""

import json
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .build import KIND_MODULES, build_tools
from .commands import run, succeeds
from .control_plane import AUDIT_POLICY
from .errors import LabError
from .kubectl import node_ready
from .mounts import remove_tree
from .oci import Image, write_archive
from .paths import Paths
from .progress import Progress

_NAME = "headway"
# Inside the node's container.
_AUDIT_POLICY = "/etc/headway/audit-policy.json"
_AUDIT_LOGS = "/var/log/headway-audit"


def docker_answers() -> bool:
    """Whether there is a Docker engine that this user may use."""
    return succeeds(["docker", "info"])


def cluster_configuration(paths: Paths) -> dict[str, Any]:
    """What kind creates: the cache at the same path in the node, the audit log outside it."""
    policy = paths.config / "audit-policy.json"
    api_server = {
        "extraArgs": {
            "audit-policy-file": _AUDIT_POLICY,
            "audit-log-path": f"{_AUDIT_LOGS}/{paths.audit_log.name}",
            "audit-log-maxsize": "100",
            "audit-log-maxbackup": "3",
        },
        "extraVolumes": [
            _api_server_volume("audit-policy", _AUDIT_POLICY, "File", read_only=True),
            _api_server_volume("audit-logs", _AUDIT_LOGS, "DirectoryOrCreate", read_only=False),
        ],
    }
    patch = {"kind": "ClusterConfiguration", "apiServer": api_server}
    mounts = [
        {"hostPath": str(paths.cache), "containerPath": str(paths.cache), "readOnly": True},
        {"hostPath": str(policy), "containerPath": _AUDIT_POLICY, "readOnly": True},
        {"hostPath": str(paths.audit_log.parent), "containerPath": _AUDIT_LOGS},
    ]
    return {
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "kind": "Cluster",
        "nodes": [
            {
                "role": "control-plane",
                "extraMounts": mounts,
                "kubeadmConfigPatches": [json.dumps(patch)],
            }
        ],
    }


def _api_server_volume(name: str, path: str, kind: str, *, read_only: bool) -> dict[str, Any]:
    return {
        "name": name,
        "hostPath": path,
        "mountPath": path,
        "pathType": kind,
        "readOnly": read_only,
    }


@dataclass(frozen=True)
class KindCluster:
    """The lab's cluster in Docker."""

    paths: Paths
    progress: Progress

    def up(self) -> None:
        """Create the cluster unless it is there."""
        build_tools(self.paths, self.progress, KIND_MODULES)
        if self._exists() and self.paths.kubeconfig.exists() and node_ready(self.paths):
            self.progress.say("the kind cluster is already running")
            return
        self.down()
        for directory in (self.paths.config, self.paths.audit_log.parent):
            directory.mkdir(parents=True, exist_ok=True)
        (self.paths.config / "audit-policy.json").write_text(json.dumps(AUDIT_POLICY))
        configuration = self.paths.config / "kind.json"
        configuration.write_text(json.dumps(cluster_configuration(self.paths), indent=1))
        with self.progress.step("creating the kind cluster"):
            self._kind(
                *("create", "cluster", "--name", _NAME, "--config", configuration),
                *("--kubeconfig", self.paths.kubeconfig, "--wait", "180s"),
            )

    def down(self) -> None:
        """Delete the cluster and its state, if there are any."""
        if (self.paths.bin / "kind").exists():
            self._kind("delete", "cluster", "--name", _NAME)
        remove_tree(self.paths.state)
        self.progress.say("the kind cluster is gone")

    def import_images(self, images: Iterable[Image]) -> list[str]:
        """Load images into the node; returns their names."""
        images = list(images)
        with tempfile.TemporaryDirectory() as directory:
            archive = Path(directory, "images.tar")
            with archive.open("wb") as out:
                write_archive(images, out)
            self._kind("load", "image-archive", archive, "--name", _NAME)
        return [name for image in images for name in image.names]

    def component_lines(self) -> list[str]:
        """What runs, for people to read."""
        return [f"kind cluster {_NAME!r} " + ("exists" if self._exists() else "does not exist")]

    def start_prometheus(self) -> None:
        """Refused: see the top of this file."""
        raise _native_only("Prometheus")

    def stop_prometheus(self) -> None:
        """Refused likewise."""
        raise _native_only("Prometheus")

    def start_api_server(self) -> None:
        """Refused likewise."""
        raise _native_only("API server to be started and stopped")

    def stop_api_server(self) -> None:
        """Refused likewise."""
        raise _native_only("API server to be started and stopped")

    def set_fake_nodes(self, count: int, pod_network: str) -> None:  # noqa: ARG002 - the protocol's
        """Refused likewise."""
        raise _native_only("fake nodes")

    def _exists(self) -> bool:
        return (self.paths.bin / "kind").exists() and _NAME in self._kind("get", "clusters").split()

    def _kind(self, *arguments: str | Path) -> str:
        return run([self.paths.bin / "kind", *arguments])


def _native_only(what: str) -> LabError:
    return LabError(f"the kind cluster has no {what}: set HEADWAY_LAB=native, and be root")
