"""The native cluster: Kubernetes as processes of this machine, without Docker."""

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from . import control_plane, kwok, node, prometheus
from .addresses import CLUSTER_DOMAIN, NODE_ADDRESS, PROMETHEUS_URL
from .build import KWOK_MODULES, build_tools
from .cgroups import create_cgroups, kill_containers, remove_cgroups
from .commands import find_executable, succeeds
from .containerd import (
    containerd_answers,
    containerd_command,
    import_images,
    remove_shim_sockets,
)
from .credentials import write_credentials
from .dns import resolves
from .errors import LabError
from .images import PAUSE, pause_image
from .kubectl import apply, fake_nodes, get, node_ready
from .machine import prepare_machine, restore_machine
from .mounts import remove_tree
from .network import create_network, remove_network
from .oci import Image
from .paths import Paths
from .processes import (
    container_shims,
    kill,
    require_running,
    running_components,
    start_component,
    stop_components,
)
from .progress import Progress

_CLIENTS = (
    prometheus.COMPONENT,
    "kubelet",
    "kube-proxy",
    "coredns",
    "kube-scheduler",
    "kube-controller-manager",
)
_FOUNDATION = ("containerd", "kube-apiserver", "etcd")
COMPONENTS = (*_CLIENTS, *_FOUNDATION)
_ON_DEMAND = (kwok.COMPONENT,)

_READY_SECONDS = 180.0
_POLL_SECONDS = 0.2
_NET_TOOLS_REMEDY = "apt-get install iptables iproute2 conntrack"


@dataclass(frozen=True)
class NativeCluster:
    """The lab's cluster on this machine; needs root."""

    paths: Paths
    progress: Progress

    def exists(self) -> bool:
        """Whether anything of the cluster is there, running or left over."""
        return (
            self.paths.pki.exists()
            or (self.paths.state / "machine.json").exists()
            or bool(running_components(self.paths))
        )

    def up(self) -> None:
        """Start what does not run, and wait until pods can be created.

        When nothing runs, what an earlier cluster left behind (after a crash or a reboot) is
        removed first. When a part runs, the rest is started and joins it.
        """
        _require_root()
        running = running_components(self.paths)
        if not running and self.exists():
            self.progress.say("removing what an earlier cluster left behind")
            self.down()
        if running.keys() >= set(COMPONENTS) and self._ready():
            self.progress.say("the cluster is already running")
            return
        build_tools(self.paths, self.progress)
        pause = pause_image(self.paths, self.progress)
        self._start(pause)
        self._wait_until_ready()
        self.progress.say(f"the cluster is ready; kubeconfig: {self.paths.kubeconfig}")

    def _start(self, pause: Image) -> None:
        for program in ("iptables", "ip", "conntrack"):
            find_executable(program, _NET_TOOLS_REMEDY)
        self.progress.say("starting etcd, the API server and containerd")
        for directory in (self.paths.state, self.paths.config, self.paths.logs):
            directory.mkdir(parents=True, exist_ok=True)
        prepare_machine(self.paths)
        create_cgroups()
        create_network(self.paths)
        write_credentials(self.paths)
        start_component(self.paths, control_plane.etcd_command(self.paths))
        start_component(self.paths, containerd_command(self.paths, PAUSE))
        start_component(
            self.paths, control_plane.api_server_command(self.paths), **control_plane.MORE_MEMORY
        )
        self._wait_for("containerd", _FOUNDATION, lambda: containerd_answers(self.paths))
        import_images(self.paths, [pause])
        self._wait_for("the API server", _FOUNDATION, lambda: _api_server_ready(self.paths))
        self.progress.say("starting the controllers, the scheduler, DNS, the node and Prometheus")
        apply(self.paths, [*control_plane.COREDNS_ROLE, *prometheus.ROLE])
        for command in (
            control_plane.controller_manager_command,
            control_plane.scheduler_command,
            control_plane.coredns_command,
            node.kubelet_command,
            node.kube_proxy_command,
            prometheus.prometheus_command,
        ):
            start_component(self.paths, command(self.paths), **control_plane.MORE_MEMORY)

    def _wait_until_ready(self) -> None:
        self._wait_for("the node", COMPONENTS, lambda: node_ready(self.paths))
        self._wait_for(
            "the default service account", COMPONENTS, lambda: _service_account(self.paths)
        )
        self._wait_for("DNS", COMPONENTS, _dns_answers)
        self._wait_for_prometheus()

    def _wait_for_prometheus(self) -> None:
        self._wait_for(
            "Prometheus",
            [prometheus.COMPONENT],
            lambda: prometheus.prometheus_answers(self.paths),
        )

    def _ready(self) -> bool:
        return (
            node_ready(self.paths)
            and _service_account(self.paths)
            and _dns_answers()
            and prometheus.prometheus_answers(self.paths)
        )

    def _wait_for(self, what: str, components: Iterable[str], ready: Callable[[], bool]) -> None:
        """Wait, but not longer than the components live that must bring it about.

        Who cannot be asked is not ready: on a busy machine the API server may not answer in time.
        """
        deadline = time.monotonic() + _READY_SECONDS
        with self.progress.step(f"waiting for {what}"):
            while True:
                trouble = ""
                try:
                    if ready():
                        return
                except LabError as error:
                    trouble = f" ({error})"
                require_running(self.paths, components)
                if time.monotonic() > deadline:
                    raise LabError(
                        f"{what} is not ready after {_READY_SECONDS:.0f} s{trouble}: "
                        f"see {self.paths.logs}, then run `down` and `up`"
                    )
                time.sleep(_POLL_SECONDS)

    def down(self) -> None:
        """Stop everything and remove all but the cache; works on any remains, and on none."""
        _require_root()
        self.progress.say("stopping the node and the controllers")
        # The kubelet before the containers, as it would restart them; etcd after the API server,
        # which does not end while it waits for etcd.
        stop_components(self.paths, (*_ON_DEMAND, *_CLIENTS))
        self.progress.say("ending the containers")
        kill_containers()
        kill(container_shims(self.paths))
        stop_components(self.paths, ["containerd"])
        self.progress.say("stopping the API server and etcd")
        stop_components(self.paths, ["kube-apiserver"])
        stop_components(self.paths, ["etcd"])
        self.progress.say("removing network, control groups, mounts and state")
        remove_network(self.paths)
        remove_cgroups()
        remove_shim_sockets(self.paths)
        restore_machine(self.paths)
        remove_tree(self.paths.state)
        self.progress.say("the cluster is gone")

    def import_images(self, images: Iterable[Image]) -> list[str]:
        """Import those images that the node lacks; returns their names."""
        if "containerd" not in running_components(self.paths):
            raise LabError("containerd does not run: run `up` first")
        return import_images(self.paths, images)

    def component_lines(self) -> list[str]:
        """What runs, for people to read."""
        running = running_components(self.paths)
        names = (*COMPONENTS, *(name for name in _ON_DEMAND if name in running))
        return [
            *(
                f"{name:<24} " + (f"pid {running[name].pid}" if name in running else "not running")
                for name in names
            ),
            f"{'Prometheus API':<24} {PROMETHEUS_URL}",
        ]

    def start_prometheus(self) -> None:
        """Start Prometheus again after `stop_prometheus`; what it had collected is still there."""
        self._require_api_server()
        start_component(self.paths, prometheus.prometheus_command(self.paths))
        self._wait_for_prometheus()

    def stop_prometheus(self) -> None:
        """Stop Prometheus, as a fault; `up` starts it as well."""
        stop_components(self.paths, [prometheus.COMPONENT])

    def start_api_server(self) -> None:
        """Start the API server again after `stop_api_server`; etcd has kept everything."""
        if "etcd" not in running_components(self.paths):
            raise LabError("etcd does not run: run `up` first")
        start_component(
            self.paths, control_plane.api_server_command(self.paths), **control_plane.MORE_MEMORY
        )
        self._wait_for("the API server", _FOUNDATION, lambda: _api_server_ready(self.paths))

    def stop_api_server(self) -> None:
        """Stop the API server alone, as a fault; containers run on."""
        stop_components(self.paths, ["kube-apiserver"])

    def set_fake_nodes(self, count: int, pod_network: str) -> None:
        """Have `count` fake nodes (see kwok.py) and wait until they are Ready."""
        self._require_api_server()
        build_tools(self.paths, self.progress, KWOK_MODULES)
        apply(self.paths, kwok.ROLE)
        # Started anew in any case, as the network may be another one.
        stop_components(self.paths, [kwok.COMPONENT])
        kwok.set_fake_nodes(self.paths, count)
        if count == 0:
            return
        start_component(self.paths, kwok.kwok_command(self.paths, pod_network))
        self._wait_for(
            f"{count} fake nodes", [kwok.COMPONENT], lambda: all(fake_nodes(self.paths).values())
        )

    def _require_api_server(self) -> None:
        if "kube-apiserver" not in running_components(self.paths):
            raise LabError("the API server does not run: run `up` first")


def _require_root() -> None:
    if os.geteuid() != 0:
        raise LabError("the native cluster needs root: use sudo, or a machine with Docker")


def _api_server_ready(paths: Paths) -> bool:
    kubectl = (paths.bin / "kubectl", "--kubeconfig", paths.kubeconfig)
    return succeeds([*kubectl, "--request-timeout=2s", "get", "--raw", "/readyz"])


def _service_account(paths: Paths) -> bool:
    return get(paths, "serviceaccount", "default", "--namespace", "default") is not None


def _dns_answers() -> bool:
    return resolves(NODE_ADDRESS, f"kubernetes.default.svc.{CLUSTER_DOMAIN}")
