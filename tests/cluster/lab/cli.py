"""The command line of the lab."""

import argparse
import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .addresses import FAKE_POD_NETWORK
from .build import TOOLS, build_tools, tool_version
from .cache import locked
from .cluster import Cluster, choose_cluster
from .engine_environment import EngineRequirements, engine_environment
from .errors import LabError
from .images import engine_image, product_images
from .kubectl import fake_gpus, node_name, node_ready
from .model import prepare_model
from .paths import REPOSITORY, Paths
from .progress import Progress
from .volumes import create_volumes

_DESCRIPTION = """A real Kubernetes cluster of one node on this machine, for demos and tests.

Progress goes to standard error, results to standard output. HEADWAY_CACHE (/var/cache/headway)
keeps what is built, HEADWAY_STATE (/var/lib/headway-lab) what belongs to the running cluster."""


@dataclass(frozen=True)
class Lab:
    """What every command works with."""

    paths: Paths
    progress: Progress
    arguments: argparse.Namespace

    @property
    def cluster(self) -> Cluster:
        """The cluster of this machine."""
        return choose_cluster(self.paths, self.progress)


def build(lab: Lab) -> None:
    """Build Kubernetes and its tools (once: about 8 minutes on 2 cores)."""
    build_tools(lab.paths, lab.progress)
    print(lab.paths.bin)


def up(lab: Lab) -> None:
    """Start the cluster and wait until it takes pods."""
    with locked(lab.paths, "cluster"):
        lab.cluster.up()


def down(lab: Lab) -> None:
    """Stop the cluster and remove all of it; the cache stays."""
    with locked(lab.paths, "cluster"):
        lab.cluster.down()


def status(lab: Lab) -> None:
    """Show what runs; fails unless the node is Ready."""
    for line in lab.cluster.component_lines():
        print(line)
    versions = {tool.version_of: tool_version(tool) for tool in TOOLS}
    print(
        f"{'versions':<24} " + ", ".join(f"{name} {version}" for name, version in versions.items())
    )
    print(f"{'kubeconfig':<24} {lab.paths.kubeconfig}")
    print(f"{'audit log':<24} {lab.paths.audit_log}")
    ready = node_ready(lab.paths)
    print(f"{'node ' + node_name(lab.paths):<24} {'Ready' if ready else 'not Ready'}")
    if not ready:
        raise LabError("the node is not Ready: wait, or run `up`")


def kubeconfig(lab: Lab) -> None:
    """Print the path of the administrator's kubeconfig."""
    print(lab.paths.kubeconfig)


def env(lab: Lab) -> None:
    """Print shell commands that set KUBECONFIG and PATH: eval "$(... env)"."""
    print(f"export KUBECONFIG={shlex.quote(str(lab.paths.kubeconfig))}")
    print(f'export PATH={shlex.quote(str(lab.paths.bin))}:"$PATH"')


def images(lab: Lab) -> None:
    """Build the lab's and the product's images and import them; prints their names."""
    product = product_images(lab.paths, lab.progress, lab.arguments.checkout)
    every = {"engine": engine_image(lab.paths, lab.progress), **product}
    with lab.progress.step("importing images"):
        new = lab.cluster.import_images(every.values())
    lab.progress.say(f"{len(new)} image names are new" if new else "all images were there")
    names = {kind: image.names[0] for kind, image in every.items()}
    _print_result(lab, names)


def engine(lab: Lab) -> None:
    """Prepare the engine's environment and a small model; prints their paths."""
    requirements = EngineRequirements.of_repository(lab.arguments.checkout)
    environment = engine_environment(lab.paths, lab.progress, requirements)
    model = prepare_model(lab.paths, lab.progress, environment)
    _print_result(lab, {"environment": str(environment), "model": str(model)})


def volumes(lab: Lab) -> None:
    """Offer the engine's environment and the model as claims in a namespace."""
    create_volumes(lab.paths, lab.arguments.namespace)


def set_fake_gpus(lab: Lab) -> None:
    """Make the node offer GPUs that do not exist."""
    fake_gpus(lab.paths, lab.arguments.count)


def prometheus(lab: Lab) -> None:
    """Stop Prometheus, or start it again with its data, to see what happens without it."""
    with locked(lab.paths, "cluster"):
        if lab.arguments.action == "start":
            lab.cluster.start_prometheus()
        else:
            lab.cluster.stop_prometheus()


def api_server(lab: Lab) -> None:
    """Stop the API server, or start it again, to see what happens without it."""
    with locked(lab.paths, "cluster"):
        if lab.arguments.action == "start":
            lab.cluster.start_api_server()
        else:
            lab.cluster.stop_api_server()


def kwok(lab: Lab) -> None:
    """Have this many fake nodes, tainted kwok.x-k8s.io/node=fake:NoSchedule; 0 ends them."""
    with locked(lab.paths, "cluster"):
        lab.cluster.set_fake_nodes(lab.arguments.nodes, lab.arguments.cidr)


def _print_result(lab: Lab, result: dict[str, str]) -> None:
    if lab.arguments.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:<12} {value}")


def main(argv: Sequence[str]) -> int:
    """Run one command; returns the exit code."""
    # Files of the cache are read by pods under other users.
    os.umask(0o022)
    arguments = _parser().parse_args(argv)
    run: Callable[[Lab], None] = arguments.run
    try:
        run(Lab(Paths.from_environment(os.environ), Progress(), arguments))
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; the same command takes up from here", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.cluster.lab",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[Lab], None]) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=run.__doc__, description=run.__doc__)
        added.set_defaults(run=run)
        return added

    for run in (build, up, down, status, kubeconfig, env):
        command(run.__name__, run)
    for run in (images, engine):
        added = command(run.__name__, run)
        added.add_argument("--json", action="store_true", help="print the result as JSON")
        added.add_argument(
            "--checkout",
            type=Path,
            default=REPOSITORY,
            help="build from another checkout, such as an earlier release",
        )
    command("volumes", volumes).add_argument("namespace", help="an existing namespace")
    command("prometheus", prometheus).add_argument("action", choices=["start", "stop"])
    command("api-server", api_server).add_argument("action", choices=["start", "stop"])
    added = command("kwok", kwok)
    added.add_argument("nodes", type=int, help="how many")
    added.add_argument(
        "--cidr", default=FAKE_POD_NETWORK, help="addresses of their pods (%(default)s)"
    )
    command("fake-gpus", set_fake_gpus).add_argument("count", type=int, help="how many")
    return parser
