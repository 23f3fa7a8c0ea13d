"""Which cluster the lab runs: kind where there is Docker, else Kubernetes as plain processes."""

import os
from collections.abc import Iterable
from typing import Protocol

from .kind import KindCluster, docker_answers
from .native import NativeCluster
from .oci import Image
from .paths import Paths
from .progress import Progress


class Cluster(Protocol):
    """What both kinds of cluster offer; every method may be called at any time, also twice."""

    def up(self) -> None:
        """Start, or do nothing when it runs."""

    def down(self) -> None:
        """Stop and remove all but the cache."""

    def import_images(self, images: Iterable[Image]) -> list[str]:
        """Make images known to the node; returns the names of those that were new."""

    def start_prometheus(self) -> None:
        """Start Prometheus after `stop_prometheus`; LabError where there is none."""

    def stop_prometheus(self) -> None:
        """Stop Prometheus and keep its data; LabError where there is none."""

    def start_api_server(self) -> None:
        """Start the API server after `stop_api_server`; LabError where that is not offered."""

    def stop_api_server(self) -> None:
        """Stop the API server and nothing else; LabError where that is not offered."""

    def set_fake_nodes(self, count: int, pod_network: str) -> None:
        """Have `count` nodes that exist in the API only; LabError where that is not offered."""

    def component_lines(self) -> list[str]:
        """What runs, for people to read."""


def choose_cluster(paths: Paths, progress: Progress) -> Cluster:
    """The native one if it is there already, if HEADWAY_LAB=native, or without Docker."""
    native = NativeCluster(paths, progress)
    if os.environ.get("HEADWAY_LAB") == "native" or native.exists() or not docker_answers():
        return native
    return KindCluster(paths, progress)
