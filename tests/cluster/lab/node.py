"""Commands and configuration of the kubelet and kube-proxy."""

import json
from pathlib import Path
from typing import Any

from .addresses import CLUSTER_DOMAIN, NODE, NODE_ADDRESS, POD_NETWORK
from .cgroups import CGROUP_ROOT
from .files import write_if_changed
from .paths import Paths


def kubelet_command(paths: Paths) -> list[str | Path]:
    """The kubelet, its paths inside the state where they can be chosen."""
    file = _write(paths, "kubelet", _kubelet_configuration(paths))
    return [
        paths.bin / "kubelet",
        f"--config={file}",
        f"--kubeconfig={paths.pki / 'kubelet.kubeconfig'}",
        f"--root-dir={paths.kubelet}",
        f"--hostname-override={NODE}",
        f"--node-ip={NODE_ADDRESS}",
    ]


def _kubelet_configuration(paths: Paths) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_ADDRESS,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(paths.pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(paths.pki / "kubelet-server.crt"),
        "tlsPrivateKeyFile": str(paths.pki / "kubelet-server.key"),
        "containerRuntimeEndpoint": f"unix://{paths.containerd_socket}",
        "clusterDNS": [NODE_ADDRESS],
        "clusterDomain": CLUSTER_DOMAIN,
        "resolvConf": "/etc/resolv.conf",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": CGROUP_ROOT,
        # Machines with cgroup v1 or swap serve as well; the kubelet refuses both by default.
        "failCgroupV1": False,
        "failSwapOn": False,
        # Lowering it needs CAP_SYS_RESOURCE.
        "oomScoreAdj": 0,
        "makeIPTablesUtilChains": False,  # kube-proxy has its own
        "podLogsDir": str(paths.state / "pod-logs"),
        "volumePluginDir": str(paths.kubelet / "plugins-exec"),
        "staticPodPath": "",
        # The disk belongs to whoever works on this machine; its filling is no reason to evict.
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "1%",
            "imagefs.inodesFree": "1%",
        },
        # 100 switches image collection off: nothing here could be pulled again.
        "imageGCHighThresholdPercent": 100,
        "serializeImagePulls": False,
        "maxPods": 250,
        "containerLogMaxSize": "20Mi",
        "containerLogMaxFiles": 3,
    }


def kube_proxy_command(paths: Paths) -> list[str | Path]:
    """kube-proxy in iptables mode."""
    file = _write(paths, "kube-proxy", _kube_proxy_configuration(paths))
    return [paths.bin / "kube-proxy", f"--config={file}"]


def _kube_proxy_configuration(paths: Paths) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(paths.pki / "kube-proxy.kubeconfig")},
        "hostnameOverride": NODE,
        "mode": "iptables",
        "clusterCIDR": POD_NETWORK,
        "bindAddress": NODE_ADDRESS,
        "healthzBindAddress": f"{NODE_ADDRESS}:10256",
        "metricsBindAddress": f"{NODE_ADDRESS}:10249",
        "nodePortAddresses": [f"{NODE_ADDRESS}/32"],
        "iptables": {"localhostNodePorts": False},
        "oomScoreAdj": 0,
        # Zero leaves the machine's connection tracking as it is.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }


def _write(paths: Paths, name: str, configuration: dict[str, Any]) -> Path:
    return write_if_changed(paths.config / f"{name}.json", json.dumps(configuration, indent=1))
