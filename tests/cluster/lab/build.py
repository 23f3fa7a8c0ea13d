"""Builds the cluster's programs from Go modules, as no registry of binaries is needed for that.

Each directory under `tools/` is a module that pins versions (go.mod, go.sum); each `Tool` is one
binary made from it. A further module is a further directory and its tools in `TOOLS`.
"""

import os
import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .cache import cached_directory, digest, digest_files, point
from .commands import run, system_environment
from .errors import LabError
from .go_toolchain import find_go
from .paths import CLUSTER_DIRECTORY, Paths
from .progress import Progress

_MODULES = CLUSTER_DIRECTORY / "tools"


@dataclass(frozen=True)
class Tool:
    """One binary to build."""

    name: str
    module: str  # directory under tools/
    package: str  # Go package with the main function
    version_of: str  # the required Go module whose version is stamped into the binary
    version_symbol: str = ""  # Go string variable that gets the stamp; empty: the binary knows it
    stamps: tuple[str, ...] = ()  # further variables, as SYMBOL=VALUE
    tags: tuple[str, ...] = ()  # Go build tags


def _kubernetes(name: str) -> Tool:
    return Tool(
        name,
        "kubernetes",
        f"k8s.io/kubernetes/cmd/{name}",
        "k8s.io/kubernetes",
        "k8s.io/component-base/version.gitVersion",
    )


def _prometheus(name: str) -> Tool:
    # Releases are tagged twice, v0.316.0 for Go and v3.16.0 for people; the latter is stamped.
    return Tool(
        name,
        "prometheus",
        f"github.com/prometheus/prometheus/cmd/{name}",
        "github.com/prometheus/prometheus",
        stamps=("github.com/prometheus/common/version.Version=3.16.0",),
        # Every kind of discovery but files, HTTP and Kubernetes brings a cloud's libraries along.
        tags=("remove_all_sd", "enable_kubernetes_sd"),
    )


TOOLS = (
    _kubernetes("kube-apiserver"),
    _kubernetes("kube-controller-manager"),
    _kubernetes("kube-scheduler"),
    _kubernetes("kubelet"),
    _kubernetes("kube-proxy"),
    _kubernetes("kubectl"),
    Tool("etcd", "kubernetes", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3"),
    Tool(
        "helm",
        "kubernetes",
        "helm.sh/helm/v3/cmd/helm",
        "helm.sh/helm/v3",
        "helm.sh/helm/v3/internal/version.version",
        # `helm template` and `helm lint` judge a chart's kubeVersion by these: 1.20 when unstamped.
        tuple(
            f"helm.sh/helm/v3/pkg/{package}.k8sVersion{part}={value}"
            for package in ("chartutil", "lint/rules")
            for part, value in (("Major", 1), ("Minor", 34))
        ),
    ),
    Tool("coredns", "kubernetes", "./coredns", "github.com/coredns/coredns"),
    # The HTTP API only: the web interface's assets are not in the Go module.
    _prometheus("prometheus"),
    _prometheus("promtool"),
    Tool("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", "sigs.k8s.io/kwok"),
    Tool("kind", "kind", "sigs.k8s.io/kind", "sigs.k8s.io/kind"),
)
NATIVE_MODULES = frozenset({"kubernetes", "prometheus"})
KIND_MODULES = frozenset({"kubernetes", "kind"})
KWOK_MODULES = frozenset({"kwok"})


def tool_version(tool: Tool) -> str:
    """The version that the tool's go.mod requires, such as v1.34.4."""
    text = (_MODULES / tool.module / "go.mod").read_text()
    requirement = rf"^\s*(?:require\s+)?{re.escape(tool.version_of)} (v\S+)"
    match = re.search(requirement, text, re.MULTILINE)
    if match is None:
        raise LabError(f"tools/{tool.module}/go.mod does not require {tool.version_of}: add it")
    return match.group(1)


def build_tools(paths: Paths, progress: Progress, modules: Iterable[str] = NATIVE_MODULES) -> None:
    """Build what is not in the cache yet and point `paths.bin` at it.

    Raises LabError when Go is missing or a build fails.
    """
    for module in sorted(modules):
        directory = _build_module(paths, progress, module)
        paths.bin.mkdir(parents=True, exist_ok=True)
        for tool in _tools_of(module):
            point(paths.bin / tool.name, directory / tool.name)


def _tools_of(module: str) -> list[Tool]:
    return [tool for tool in TOOLS if tool.module == module]


def _build_module(paths: Paths, progress: Progress, module: str) -> Path:
    source = _MODULES / module
    tools = _tools_of(module)
    files = [file for file in source.rglob("*") if file.suffix in {".go", ".mod", ".sum"}]
    key = digest(digest_files(source, files), repr(tools), platform.machine())

    def make(target: Path) -> None:
        for number, tool in enumerate(tools, start=1):
            with progress.step(f"building {tool.name} ({number} of {len(tools)})"):
                _build(source, tool, target / tool.name)

    return cached_directory(paths, f"tools-{module}", key, make)


def _build(source: Path, tool: Tool, target: Path) -> None:
    go = find_go()
    version = tool_version(tool)
    own = [f"{tool.version_symbol}={version}"] if tool.version_symbol else []
    stamp = "".join(f" -X {each}" for each in (*own, *tool.stamps))
    # -buildvcs=false, as the sources are not this repository's.
    flags = ["-trimpath", "-buildvcs=false", "-ldflags", f"-s -w{stamp}"]
    tags = ["-tags", ",".join(tool.tags)] if tool.tags else []
    run(
        [go, "build", *flags, *tags, "-o", target, tool.package],
        environment=system_environment(
            CGO_ENABLED="0",
            # A module may demand a newer Go than the one found: that is fetched like any module.
            GOTOOLCHAIN=os.environ.get("GOTOOLCHAIN", "auto"),
        ),
        directory=source,
    )
