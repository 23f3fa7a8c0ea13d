"""Who is who in the native cluster: certificates of all components, and their kubeconfigs."""

import base64
import json
import shutil
from typing import Any

from .addresses import (
    API_SERVER,
    API_SERVER_SERVICE_ADDRESS,
    CLUSTER_DOMAIN,
    NODE,
    NODE_ADDRESS,
)
from .certificates import Authority, Pair, signing_key, write_private
from .paths import Paths

_LOCAL_HOSTS = ("localhost", "127.0.0.1", NODE, NODE_ADDRESS)
_API_SERVER_HOSTS = (
    *_LOCAL_HOSTS,
    API_SERVER_SERVICE_ADDRESS,
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    f"kubernetes.default.svc.{CLUSTER_DOMAIN}",
)

PROMETHEUS_USER = "headway-lab:prometheus"
KWOK_USER = "headway-lab:kwok"

# Most are the names to which Kubernetes' built-in roles are bound.
_CLIENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "admin": ("headway-lab-admin", ("system:masters",)),
    "kube-controller-manager": ("system:kube-controller-manager", ()),
    "kube-scheduler": ("system:kube-scheduler", ()),
    "kubelet": (f"system:node:{NODE}", ("system:nodes",)),
    "kube-proxy": ("system:kube-proxy", ()),
    "coredns": ("system:coredns", ()),
    "prometheus": (PROMETHEUS_USER, ()),
    "kwok": (KWOK_USER, ()),
}


def write_credentials(paths: Paths) -> None:
    """Make all certificates, keys and kubeconfigs, unless they are there."""
    if paths.pki.is_dir():
        return
    partial = paths.pki.with_name(".pki.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True, mode=0o700)
    authority = Authority()
    authority.pair.write(partial, "ca")
    authority.issue("etcd", hosts=_LOCAL_HOSTS).write(partial, "etcd")
    authority.issue("kube-apiserver", hosts=_API_SERVER_HOSTS).write(partial, "kube-apiserver")
    # The API server calls the kubelet for logs, exec and port-forward.
    authority.issue("kube-apiserver", ("system:masters",)).write(partial, "kubelet-client")
    authority.issue(f"system:node:{NODE}", hosts=_LOCAL_HOSTS).write(partial, "kubelet-server")
    signing_key().write(partial, "service-accounts")
    ca = authority.pair.certificate
    for component, (user, groups) in _CLIENTS.items():
        content = json.dumps(kubeconfig(ca, authority.issue(user, groups)), indent=1).encode()
        write_private(partial / f"{component}.kubeconfig", content)
    shutil.copy2(partial / "admin.kubeconfig", paths.kubeconfig)
    partial.rename(paths.pki)


def kubeconfig(ca: bytes, client: Pair) -> dict[str, Any]:
    """A kubeconfig that carries its certificates (JSON is YAML)."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": NODE,
        "clusters": [
            {
                "name": NODE,
                "cluster": {
                    "server": API_SERVER,
                    "certificate-authority-data": _base64(ca),
                },
            }
        ],
        "users": [
            {
                "name": NODE,
                "user": {
                    "client-certificate-data": _base64(client.certificate),
                    "client-key-data": _base64(client.key),
                },
            }
        ],
        "contexts": [{"name": NODE, "context": {"cluster": NODE, "user": NODE}}],
    }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
