import json
import re
import ssl
from pathlib import Path

import pytest

from tests.cluster.lab.build import NATIVE_MODULES, TOOLS, Tool, tool_version
from tests.cluster.lab.containerd import configuration
from tests.cluster.lab.credentials import write_credentials
from tests.cluster.lab.kind import cluster_configuration
from tests.cluster.lab.mounts import parse_mount_points
from tests.cluster.lab.paths import Paths
from tests.cluster.lab.volumes import persistent_volume

PATHS = Paths(cache=Path("/cache"), state=Path("/state"))


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_tool_has_a_pinned_version(tool: Tool) -> None:
    assert tool_version(tool).startswith("v")


@pytest.mark.parametrize("name", ["prometheus", "promtool"])
def test_prometheus_is_stamped_with_the_release_that_is_built(name: str) -> None:
    tool = next(tool for tool in TOOLS if tool.name == name)
    release = re.fullmatch(r"v0\.(\d+)(\d\d)\.(\d+)", tool_version(tool))
    assert release is not None
    major, minor, patch = map(int, release.groups())
    assert tool.stamps == (f"github.com/prometheus/common/version.Version={major}.{minor}.{patch}",)


def test_a_cluster_is_not_kept_waiting_for_what_only_benchmarks_need() -> None:
    modules = {tool.name: tool.module for tool in TOOLS}
    assert {modules["prometheus"], modules["promtool"]} <= NATIVE_MODULES
    assert modules["kwok"] not in NATIVE_MODULES


def test_paths_come_from_the_environment() -> None:
    paths = Paths.from_environment({"HEADWAY_CACHE": "/a", "HEADWAY_STATE": "/b"})
    assert (paths.bin, paths.kubeconfig) == (Path("/a/bin"), Path("/b/admin.kubeconfig"))


def test_mount_points_are_read_with_their_escapes() -> None:
    text = "36 35 98:0 / /plain rw - ext4 /dev/x rw\n37 35 98:0 / /a\\040b rw - tmpfs tmpfs rw\n"
    assert parse_mount_points(text) == [Path("/plain"), Path("/a b")]


def test_containerd_keeps_to_the_state_directory() -> None:
    text = configuration(PATHS, "localhost/pause:1")
    for key in ("root", "state", "address", "path", "conf_dir"):
        assert f'{key} = "/state/' in text


def test_a_volume_is_reserved_for_one_claim() -> None:
    spec = persistent_volume("ns", "models", Path("/cache/models"))["spec"]
    assert (spec["claimRef"]["namespace"], spec["claimRef"]["name"]) == ("ns", "models")
    assert spec["accessModes"] == ["ReadOnlyMany"]


def test_certificates_verify_against_the_authority(tmp_path: Path) -> None:
    paths = Paths(cache=tmp_path / "cache", state=tmp_path / "state")
    paths.state.mkdir()
    write_credentials(paths)
    context = ssl.create_default_context(cafile=str(paths.pki / "ca.crt"))
    context.load_cert_chain(paths.pki / "kube-apiserver.crt", paths.pki / "kube-apiserver.key")
    assert paths.kubeconfig.stat().st_mode & 0o077 == 0
    assert (paths.pki / "ca.key").stat().st_mode & 0o077 == 0
    before = paths.kubeconfig.read_bytes()
    write_credentials(paths)
    assert paths.kubeconfig.read_bytes() == before


def test_kind_writes_the_audit_log_where_the_native_cluster_does() -> None:
    node = cluster_configuration(PATHS)["nodes"][0]
    mounts = {mount["containerPath"]: mount["hostPath"] for mount in node["extraMounts"]}
    arguments = json.loads(node["kubeadmConfigPatches"][0])["apiServer"]["extraArgs"]
    log = Path(arguments["audit-log-path"])
    assert Path(mounts[str(log.parent)], log.name) == PATHS.audit_log
