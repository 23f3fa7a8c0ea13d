"""Bringing up everything a service needs: the cluster, the images, the model, the chart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.lab.addresses import PROMETHEUS_URL
from tests.cluster.lab.paths import REPOSITORY, Paths
from tests.e2e.kube import Cluster

OPERATOR_NAMESPACE = "headway-system"
RELEASE = "headway"
CHART = REPOSITORY / "charts" / "headway"
EXAMPLES = REPOSITORY / "examples"


@dataclass(frozen=True)
class Images:
    """Full names of the images built from this checkout."""

    operator: str
    runtime: str
    router: str


def lab(*arguments: str) -> str:
    """Run a command of the local cluster; its progress goes to the terminal.

    Raises:
        subprocess.CalledProcessError: it failed; it has said why on standard error.
    """
    argv = [sys.executable, "-m", "tests.cluster.lab", *arguments]
    return subprocess.run(
        argv, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def lab_is_running() -> bool:
    """Whether the local cluster is up."""
    argv = [sys.executable, "-m", "tests.cluster.lab", "status"]
    return subprocess.run(argv, cwd=REPOSITORY, capture_output=True, check=False).returncode == 0


def bring_up() -> tuple[Cluster, Images]:
    """Start the local cluster and load what runs on it; quick when it is there already."""
    lab("up")
    lab("engine")
    tags = json.loads(lab("images", "--json"))
    kubeconfig = Path(lab("kubeconfig").strip())
    cluster = Cluster(kubeconfig, Paths.from_environment(os.environ).bin)
    return cluster, Images(tags["operator"], tags["runtime"], tags["router"])


def install_chart(cluster: Cluster, images: Images, *settings: str) -> str:
    """Install or upgrade the chart with this checkout's images, and wait for the operator."""
    operator_repository, operator_tag = images.operator.rsplit(":", 1)
    runtime_repository, runtime_tag = images.runtime.rsplit(":", 1)
    router_repository, router_tag = images.router.rsplit(":", 1)
    values = (
        f"image.repository={operator_repository}",
        f"image.tag={operator_tag}",
        f"runtimeImage.repository={runtime_repository}",
        f"runtimeImage.tag={runtime_tag}",
        f"routerImage.repository={router_repository}",
        f"routerImage.tag={router_tag}",
        f"prometheus.url={PROMETHEUS_URL}",
    )
    # Strings: a digest may be made of digits only.
    given = (*(("--set-string", each) for each in values), *(("--set", each) for each in settings))
    return cluster.run(
        *("helm", "upgrade", "--install", RELEASE, str(CHART)),
        *("--namespace", OPERATOR_NAMESPACE, "--create-namespace", "--wait", "--timeout", "3m"),
        *(part for pair in given for part in pair),
        timeout_s=240,
    )


def make_namespace(cluster: Cluster, name: str) -> None:
    """A namespace under the *restricted* pod security profile, with the claims examples mount."""
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
    }
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(document))
    lab("volumes", name)
    bound = "--for=jsonpath={.status.phase}=Bound"
    cluster.kubectl("wait", "pvc", "--all", "-n", name, bound, "--timeout=60s")


def example(name: str, change: Callable[[dict[str, Any]], None] | None = None) -> dict[str, Any]:
    """An example from the repository as an object, changed if asked."""
    document: dict[str, Any] = yaml.safe_load((EXAMPLES / name).read_text())
    if change is not None:
        change(document)
    return document
