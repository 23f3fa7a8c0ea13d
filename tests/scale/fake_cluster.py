"""The local cluster with fake nodes, whose pods have addresses that this machine answers at."""

from __future__ import annotations

import ipaddress
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.lab.addresses import FAKE_POD_NETWORK
from tests.cluster.lab.paths import Paths
from tests.e2e import stack
from tests.e2e.kube import Cluster
from tests.scale import fake_pods
from tests.scale.processor_time import cpu_seconds, cpu_seconds_of_cluster


@dataclass(frozen=True)
class FakeCluster:
    """What the benchmark works with.

    Attributes:
        images: of operator and runtime, built from this checkout.
        api_url: the API server on loopback.
        audit_log: its audit log.
        sidecars_pid: the process behind the addresses of fake pods.
    """

    cluster: Cluster
    images: stack.Images
    api_url: str
    audit_log: Path
    sidecars_pid: int

    def cpu_seconds(self) -> dict[str, float]:
        """Processor time so far: of the cluster's programs and of the fake pods' sidecars."""
        return {**cpu_seconds_of_cluster(), "sidecars": cpu_seconds(self.sidecars_pid)}


@contextmanager
def prepared(nodes: int) -> Iterator[FakeCluster]:
    """A new cluster with fake nodes; all of it is removed afterwards, also after Ctrl-C.

    Raises:
        RuntimeError: a cluster runs already, and somebody may be using it.
    """
    if stack.lab_is_running():
        raise RuntimeError("a local cluster is running: this needs its own, `make demo-down` first")
    with ExitStack() as afterwards:
        afterwards.callback(_take_down)
        cluster, images = stack.bring_up()
        # Scraping thousands of pods once a second is more than this machine can do beside the rest.
        stack.lab("prometheus", "stop")
        afterwards.enter_context(addresses_of_this_machine())
        stack.lab("kwok", str(nodes))
        api_url = afterwards.enter_context(cluster.proxy())
        # In memory, like the pods' run directories.
        directory = tempfile.TemporaryDirectory(prefix="headway-scale-", dir="/dev/shm")
        run_dirs = Path(afterwards.enter_context(directory))
        sidecars_pid = afterwards.enter_context(fake_pods.running(api_url, run_dirs))
        audit_log = Paths.from_environment(os.environ).audit_log
        yield FakeCluster(cluster, images, api_url, audit_log, sidecars_pid)


@contextmanager
def addresses_of_this_machine() -> Iterator[None]:
    """Make every address of a fake pod one of this machine."""
    network = ipaddress.ip_interface(FAKE_POD_NETWORK).network
    route = ("local", str(network), "dev", "lo")
    subprocess.run(["ip", "route", "replace", *route], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "route", "delete", *route], check=False)


def _take_down() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("removing the cluster; this must not be interrupted", flush=True)
    stack.lab("down")
