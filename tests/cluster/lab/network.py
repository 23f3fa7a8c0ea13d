"""The node's address, the pods' bridge, and the packet rules around them."""

import json
from pathlib import Path

from .addresses import BRIDGE, NODE, NODE_ADDRESS, POD_NETWORK, SERVICE_NETWORK
from .commands import run, succeeds
from .files import write_if_changed
from .paths import Paths

_ADDRESS = (f"{NODE_ADDRESS}/32", "dev", "lo")
_RULES = (
    # Pods reach the outside under the machine's address.
    ("nat", "POSTROUTING", ("-s", POD_NETWORK, "!", "-d", POD_NETWORK, "-j", "MASQUERADE")),
    # A machine that had Docker drops what it forwards by default.
    ("filter", "FORWARD", ("-s", POD_NETWORK, "-j", "ACCEPT")),
    ("filter", "FORWARD", ("-d", POD_NETWORK, "-j", "ACCEPT")),
    # What still bears a service's address after kube-proxy's translation has no endpoint, also for
    # the moment in which kube-proxy has taken its own refusal away and not yet added the endpoint.
    # It must not leave the machine: beyond it, somebody may answer.
    *(
        ("filter", chain, ("-d", SERVICE_NETWORK, "-j", "REJECT"))
        for chain in ("OUTPUT", "FORWARD")
    ),
)
# A chain that kube-proxy takes for the kubelet's and leaves; ours makes none.
_LEFT_BY_KUBE_PROXY = (
    ("-D", "INPUT", "-j", "KUBE-FIREWALL"),
    ("-D", "OUTPUT", "-j", "KUBE-FIREWALL"),
    ("-F", "KUBE-FIREWALL"),
    ("-X", "KUBE-FIREWALL"),
)


def create_network(paths: Paths) -> None:
    """Add the node's address and our rules, and write the network plug-in's configuration."""
    run(["ip", "address", "replace", *_ADDRESS])
    for table, chain, rule in _RULES:
        if not _iptables(table, "-C", chain, rule):
            run(["iptables", "-w", "-t", table, "-I", chain, *_marked(rule)])
    directory = cni_configuration(paths)
    directory.mkdir(parents=True, exist_ok=True)
    write_if_changed(directory / "headway-lab.conflist", json.dumps(_plugins(paths), indent=1))


def cni_configuration(paths: Paths) -> Path:
    """The directory where containerd looks for the network's description."""
    return paths.containerd / "cni"


def _plugins(paths: Paths) -> dict[str, object]:
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "hairpinMode": True,  # a pod reaches itself through its Service
        "ipam": {
            "type": "host-local",
            "dataDir": str(paths.containerd / "cni-addresses"),
            "ranges": [[{"subnet": POD_NETWORK}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    return {"cniVersion": "0.4.0", "name": NODE, "plugins": [bridge]}


def remove_network(paths: Paths) -> None:
    """Undo `create_network`, kube-proxy's rules and the bridge; nothing of it need be there."""
    if (paths.bin / "kube-proxy").exists():
        succeeds([paths.bin / "kube-proxy", "--cleanup"], timeout_seconds=60)
    for program in ("iptables", "ip6tables"):
        for action in _LEFT_BY_KUBE_PROXY:
            succeeds([program, "-w", *action])
    for table, chain, rule in _RULES:
        while _iptables(table, "-D", chain, rule):
            pass
    succeeds(["ip", "link", "delete", BRIDGE])
    succeeds(["ip", "address", "delete", *_ADDRESS])
    for result in Path("/var/lib/cni/results").glob(f"{NODE}-*"):
        result.unlink()


def _iptables(table: str, action: str, chain: str, rule: tuple[str, ...]) -> bool:
    return succeeds(["iptables", "-w", "-t", table, action, chain, *_marked(rule)])


def _marked(rule: tuple[str, ...]) -> tuple[str, ...]:
    return (*rule, "-m", "comment", "--comment", NODE)
