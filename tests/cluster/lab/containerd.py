"""The container runtime, with all its paths inside the lab's state, and the images in it."""

import contextlib
import subprocess
from collections.abc import Iterable
from pathlib import Path

from .commands import find_executable, run, succeeds, system_environment
from .errors import LabError
from .files import write_if_changed
from .network import cni_configuration
from .oci import Image, write_archive
from .paths import Paths

_REMEDY = "apt-get install containerd runc containernetworking-plugins"
_CNI_PLUGINS = "/usr/lib/cni"  # of Debian's containernetworking-plugins
_SHIM_SOCKETS = Path("/run/containerd/s")


def configuration(paths: Paths, sandbox_image: str) -> str:
    """The configuration file (TOML)."""
    home = paths.containerd
    return f"""version = 2
root = "{home}/root"
state = "{home}/run"
oom_score = 0

[grpc]
address = "{paths.containerd_socket}"

[plugins."io.containerd.internal.v1.opt"]
path = "{home}/opt"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{sandbox_image}"
# Without CAP_SYS_RESOURCE (nested virtual machines) runc may not lower a process's OOM score.
restrict_oom_score_adj = true
# In the state rather than in /run/netns: what is mounted there is found and unmounted by `down`.
netns_mounts_under_state_dir = true
stream_server_address = "127.0.0.1"

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{_CNI_PLUGINS}"
conf_dir = "{cni_configuration(paths)}"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"""


def containerd_command(paths: Paths, sandbox_image: str) -> list[str | Path]:
    """Write the configuration and return the command that runs containerd."""
    containerd = find_executable("containerd", _REMEDY)
    find_executable("runc", _REMEDY)
    if not Path(_CNI_PLUGINS, "bridge").exists():
        raise LabError(f"{_CNI_PLUGINS}/bridge is missing: {_REMEDY}")
    paths.containerd.mkdir(parents=True, exist_ok=True)
    file = paths.containerd / "config.toml"
    write_if_changed(file, configuration(paths, sandbox_image))
    return [containerd, "--config", file]


def containerd_answers(paths: Paths) -> bool:
    """Whether containerd serves requests."""
    return succeeds([*_ctr(paths), "version"])


def import_images(paths: Paths, images: Iterable[Image]) -> list[str]:
    """Import those images that containerd does not have in this very version.

    Returns their names; raises LabError when containerd refuses them.
    """
    present = _present(paths)
    missing = [
        image for image in images if any(present.get(name) != image.digest for name in image.names)
    ]
    if missing:
        command = [str(part) for part in (*_ctr(paths), "images", "import", "-")]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=system_environment(),
        ) as ctr:
            assert ctr.stdin is not None
            assert ctr.stdout is not None
            # When ctr stops reading, it says below why.
            with contextlib.suppress(BrokenPipeError), ctr.stdin:
                write_archive(missing, ctr.stdin)
            said = ctr.stdout.read().decode(errors="replace")
        if ctr.returncode != 0:
            raise LabError(f"containerd does not take the images: {said.strip()}")
    return [name for image in missing for name in image.names]


def _present(paths: Paths) -> dict[str, str]:
    """Digests of the images in containerd by name."""
    lines = run([*_ctr(paths), "images", "list"]).splitlines()[1:]
    return {line.split()[0]: line.split()[2] for line in lines}


def _ctr(paths: Paths) -> list[str | Path]:
    ctr = find_executable("ctr", _REMEDY)
    return [ctr, "--address", paths.containerd_socket, "--namespace", "k8s.io"]


def remove_shim_sockets(paths: Paths) -> None:
    """Remove the sockets of our containers' shims, which containerd keeps at a fixed place."""
    for file in (paths.containerd / "run").glob("io.containerd.runtime.v2.task/*/*/address"):
        socket = Path(file.read_text().removeprefix("unix://"))
        if socket.parent == _SHIM_SOCKETS:
            socket.unlink(missing_ok=True)
