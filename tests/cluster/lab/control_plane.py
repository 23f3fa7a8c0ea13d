"""Commands and configuration of etcd, the API server, controller manager, scheduler and CoreDNS."""

import json
from pathlib import Path
from typing import Any

from .addresses import (
    CLUSTER_DOMAIN,
    ETCD_CLIENT_URL,
    ETCD_PEER_URL,
    NODE,
    NODE_ADDRESS,
    SERVICE_NETWORK,
)
from .files import write_if_changed
from .paths import Paths
from .rbac import cluster_role

_AUDIT_LOG_MEGABYTES = "100"
_AUDIT_LOG_FILES = "3"

MORE_MEMORY = {"GOGC": "300", "GOMEMLIMIT": "3GiB"}
"""A fifth of the API server's processor time is garbage collection at Go's defaults; memory is what
these machines have enough of."""

# Tests count writes by user and user agent: reads are not logged.
AUDIT_POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Metadata",
            "verbs": ["create", "update", "patch", "delete", "deletecollection"],
        },
        {"level": "None"},
    ],
}

COREDNS_ROLE = cluster_role(
    "coredns",
    "system:coredns",
    [
        {
            "apiGroups": ["", "discovery.k8s.io"],
            "resources": ["services", "pods", "namespaces", "endpointslices"],
            "verbs": ["list", "watch"],
        }
    ],
)

_COREFILE = """.:53 {{
    bind {address}
    errors
    health {address}:8080
    ready {address}:8181
    kubernetes {domain} in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig}
        fallthrough in-addr.arpa ip6.arpa
        ttl 5
    }}
    forward . /etc/resolv.conf
    cache 5
}}
"""


def etcd_command(paths: Paths) -> list[str | Path]:
    """etcd, for this machine's root only."""
    pki = paths.pki
    return [
        paths.bin / "etcd",
        f"--name={NODE}",
        f"--data-dir={paths.state / 'etcd'}",
        f"--listen-client-urls={ETCD_CLIENT_URL}",
        f"--advertise-client-urls={ETCD_CLIENT_URL}",
        f"--listen-peer-urls={ETCD_PEER_URL}",
        f"--initial-advertise-peer-urls={ETCD_PEER_URL}",
        f"--initial-cluster={NODE}={ETCD_PEER_URL}",
        "--client-cert-auth",
        f"--trusted-ca-file={pki / 'ca.crt'}",
        f"--cert-file={pki / 'etcd.crt'}",
        f"--key-file={pki / 'etcd.key'}",
        "--peer-client-cert-auth",
        f"--peer-trusted-ca-file={pki / 'ca.crt'}",
        f"--peer-cert-file={pki / 'etcd.crt'}",
        f"--peer-key-file={pki / 'etcd.key'}",
        # A crash of the machine ends the cluster anyway: `up` begins anew then.
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def api_server_command(paths: Paths) -> list[str | Path]:
    """The API server; its default admission plug-ins have Pod Security among them."""
    pki = paths.pki
    policy = paths.config / "audit-policy.json"
    write_if_changed(policy, json.dumps(AUDIT_POLICY, indent=1))
    paths.audit_log.parent.mkdir(exist_ok=True)
    return [
        paths.bin / "kube-apiserver",
        f"--etcd-servers={ETCD_CLIENT_URL}",
        f"--etcd-cafile={pki / 'ca.crt'}",
        f"--etcd-certfile={pki / 'etcd.crt'}",
        f"--etcd-keyfile={pki / 'etcd.key'}",
        f"--bind-address={NODE_ADDRESS}",
        f"--advertise-address={NODE_ADDRESS}",
        "--secure-port=6443",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--tls-cert-file={pki / 'kube-apiserver.crt'}",
        f"--tls-private-key-file={pki / 'kube-apiserver.key'}",
        f"--kubelet-certificate-authority={pki / 'ca.crt'}",
        f"--kubelet-client-certificate={pki / 'kubelet-client.crt'}",
        f"--kubelet-client-key={pki / 'kubelet-client.key'}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--service-account-issuer=https://kubernetes.default.svc.{CLUSTER_DOMAIN}",
        f"--service-account-key-file={pki / 'service-accounts.crt'}",
        f"--service-account-signing-key-file={pki / 'service-accounts.key'}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--audit-policy-file={policy}",
        f"--audit-log-path={paths.audit_log}",
        f"--audit-log-maxsize={_AUDIT_LOG_MEGABYTES}",
        f"--audit-log-maxbackup={_AUDIT_LOG_FILES}",
    ]


def controller_manager_command(paths: Paths) -> list[str | Path]:
    """The controllers, with client limits that let hundreds of Deployments settle in seconds."""
    pki = paths.pki
    return [
        paths.bin / "kube-controller-manager",
        *_client("kube-controller-manager", paths),
        f"--root-ca-file={pki / 'ca.crt'}",
        f"--service-account-private-key-file={pki / 'service-accounts.key'}",
        f"--cluster-signing-cert-file={pki / 'ca.crt'}",
        f"--cluster-signing-key-file={pki / 'ca.key'}",
        "--use-service-account-credentials",
        # Binding a claim may need a second try, which comes with the next synchronisation only.
        "--pvclaimbinder-sync-period=1s",
        # By default an HPA is looked at every 15 s.
        "--horizontal-pod-autoscaler-sync-period=5s",
    ]


def scheduler_command(paths: Paths) -> list[str | Path]:
    """The scheduler."""
    return [paths.bin / "kube-scheduler", *_client("kube-scheduler", paths)]


def _client(component: str, paths: Paths) -> list[str]:
    kubeconfig = paths.pki / f"{component}.kubeconfig"
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]


def coredns_command(paths: Paths) -> list[str | Path]:
    """The cluster's DNS, a process of the machine on the node's address."""
    text = _COREFILE.format(
        address=NODE_ADDRESS,
        domain=CLUSTER_DOMAIN,
        kubeconfig=paths.pki / "coredns.kubeconfig",
    )
    file = write_if_changed(paths.config / "Corefile", text)
    return [paths.bin / "coredns", "-conf", file]
