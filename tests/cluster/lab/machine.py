"""What the cluster changes outside its state directory, noted so that `down` can put it back."""

import json
from pathlib import Path

from .commands import succeeds
from .errors import LabError
from .mounts import remove_tree
from .paths import Paths

_SYSCTLS = Path("/proc/sys")

# Needed by the pod network.
_NETWORK_SETTINGS = {
    "net/ipv4/ip_forward": "1",
    # The bridge shows its frames to iptables: otherwise the answer of a pod that was reached
    # through a Service bypasses the address translation, as both pods are on this bridge.
    "net/bridge/bridge-nf-call-iptables": "1",
}
# Set by the kubelet itself.
_KUBELET_SETTINGS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
# Paths that are fixed in the kubelet, containerd and the CNI library.
_FIXED_DIRECTORIES = (
    Path("/var/lib/kubelet"),
    Path("/var/lib/cni"),
    Path("/var/log/containers"),
    Path("/run/containerd"),
)


def _record(paths: Paths) -> Path:
    return paths.state / "machine.json"


def prepare_machine(paths: Paths) -> None:
    """Note settings and directories as they are, the first time; set what the network needs."""
    if not (_SYSCTLS / "net/bridge").exists() and not succeeds(["modprobe", "br_netfilter"]):
        raise LabError("the kernel lacks br_netfilter: load that module")
    if not _record(paths).exists():
        names = (*_NETWORK_SETTINGS, *_KUBELET_SETTINGS)
        note = {
            "settings": {name: (_SYSCTLS / name).read_text().strip() for name in names},
            "absent": [str(path) for path in _FIXED_DIRECTORIES if not path.exists()],
        }
        # Under its name only when complete: a torn note would be of no use to `down`.
        partial = _record(paths).with_suffix(".partial")
        partial.write_text(json.dumps(note, indent=1))
        partial.rename(_record(paths))
    for name, value in _NETWORK_SETTINGS.items():
        (_SYSCTLS / name).write_text(value)


def restore_machine(paths: Paths) -> None:
    """Put back the settings, and remove the fixed directories that were not there before."""
    if not _record(paths).exists():
        return
    note = json.loads(_record(paths).read_text())
    for name, value in note["settings"].items():
        (_SYSCTLS / name).write_text(value)
    for directory in note["absent"]:
        remove_tree(Path(directory))
