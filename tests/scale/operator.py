"""``make bench-operator``: a thousand services on one operator, on fake nodes.

Everything but nodes and engines is real: the API server, the controllers, the chart's operator, and
the sidecar's own code behind the address of each pod. All of it shares this machine, and so do the
programs that measure.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.e2e import stack
from tests.e2e.service import KIND
from tests.scale import histogram, operator_pod, results, workload
from tests.scale.audit_tail import Mark
from tests.scale.fake_cluster import FakeCluster, prepared
from tests.scale.operator_pod import Memory, OperatorPod
from tests.scale.service_states import CONDITIONS, POLICY_APPLIED, READY, ServiceStates
from tests.scale.watching import watch

_SAMPLE_S = 5
_QUIET_S = 60
"""After so long without a write the operator has settled; metrics of idle pods come in by turns."""
_SETTLED_WITHIN_S = 900
_PERCENTILE = 0.99


def main() -> int:
    """Measure and write the file."""
    arguments = _parser().parse_args()
    # What ends a program must remove the cluster, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        figures, versions = measure(arguments)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        return 130
    except RuntimeError as error:
        print(f"error: {error}", flush=True)
        return 1
    command = f"python -m tests.scale.operator {' '.join(sys.argv[1:])}"
    results.write(arguments.file, command, versions, figures)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="results file to write")
    parser.add_argument("--services", type=int, default=1000, help="%(default)s")
    parser.add_argument("--replicas", type=int, default=2, help="of each service; %(default)s")
    parser.add_argument(
        "--wait-s", type=float, default=1800, help="longest wait for all to be Ready; %(default)s"
    )
    parser.add_argument("--idle-s", type=float, default=300, help="idle time; %(default)s")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a value of the chart, such as resources.limits.memory=1Gi",
    )
    return parser


def measure(arguments: argparse.Namespace) -> tuple[dict[str, Any], dict[str, str]]:
    """Everything, on a cluster of its own. Gives figures and versions."""
    services, replicas = arguments.services, arguments.replicas
    nodes = workload.nodes_for(services * replicas)
    bodies = workload.services(services, replicas)
    with prepared(nodes) as fake:
        settings = ("prometheus.url=", *arguments.set)
        stack.install_chart(fake.cluster, fake.images, *settings)
        fake.cluster.kubectl("apply", "-f", "-", stdin=workload.namespace())
        operator = OperatorPod.find(fake.cluster, fake.api_url)
        memory, states = Memory(operator), ServiceStates(services)
        figures: dict[str, Any] = {
            "services": services,
            "pods": services * replicas,
            "fake_nodes": nodes,
            "chart_settings": list(settings),
        }
        begun, cpu_s = time.monotonic(), fake.cpu_seconds()
        figures |= asyncio.run(
            measure_start(fake, bodies, states, memory, begun + arguments.wait_s)
        )
        figures |= measure_work(operator.metrics())
        figures["cpu_s"] |= {
            name: round(used_s - cpu_s.get(name, 0.0), 1)
            for name, used_s in fake.cpu_seconds().items()
        }
        figures["settled_s"] = wait_until_settled(fake, memory, begun)
        figures |= measure_idle(fake, memory, arguments.idle_s)
        figures["operator_memory_mib"] = memory.peak_mib
        figures["operator_restarts"] = operator.endings()
        told = json.loads(fake.cluster.kubectl("version", "-o", "json"))
    return figures, {
        "kubernetes": told["serverVersion"]["gitVersion"],
        "kopf": version("kopf"),
    }


async def measure_start(
    fake: FakeCluster,
    bodies: Sequence[dict[str, Any]],
    states: ServiceStates,
    memory: Memory,
    deadline: float,
) -> dict[str, Any]:
    """Apply all services at once and wait for them."""
    begun, ready_share = time.monotonic(), dict[str, float]()
    print(f"applying {states.expected} services", flush=True)
    plural, _, group = KIND.partition(".")
    namespace = f"{fake.api_url}/apis/{group}/v1alpha1/namespaces/{workload.NAMESPACE}"
    watching = asyncio.create_task(_watch(f"{namespace}/{plural}", states, begun))
    sampling = asyncio.create_task(_sample(states, memory, begun, ready_share))
    await workload.apply(f"{namespace}/{plural}", bodies)
    applied_s = time.monotonic() - begun
    print(f"[{applied_s:4.0f} s] applied", flush=True)
    done, running = await asyncio.wait(
        {watching, sampling},
        timeout=max(0.0, deadline - time.monotonic()),
        return_when=asyncio.FIRST_COMPLETED,
    )
    for task in done:
        task.result()
    for task in running:
        task.cancel()
    print(f"complete after: {states.complete_s}", flush=True)
    return {
        "applied_s": round(applied_s, 1),
        **{f"{_snake(kind)}_s": _rounded(states.complete_s.get(kind), 1) for kind in CONDITIONS},
        **{f"{_snake(kind)}_services": states.count(kind) for kind in CONDITIONS},
        "ready_share_at_s": ready_share,
    }


async def _watch(services_url: str, states: ServiceStates, begun: float) -> None:
    """Until every condition has held for all services."""
    async for event in watch(services_url):
        states.take(event, time.monotonic() - begun)
        if states.done:
            return


async def _sample(
    states: ServiceStates, memory: Memory, begun: float, ready_share: dict[str, float]
) -> None:
    while True:
        await asyncio.sleep(_SAMPLE_S)
        await asyncio.to_thread(memory.look)
        seconds = time.monotonic() - begun
        ready_share[f"{seconds:.0f}"] = round(states.share(READY), 3)
        print(
            f"[{seconds:4.0f} s] of {states.expected}: Ready {states.count(READY)}, policy applied "
            f"{states.count(POLICY_APPLIED)}; operator's peak memory {memory.peak_mib} MiB",
            flush=True,
        )


def measure_work(metrics: dict[str, float]) -> dict[str, Any]:
    """What the operator did until all were Ready."""
    return {
        "cpu_s": {"operator": round(operator_pod.cpu_seconds(metrics), 1)},
        "reconcile_p99_s": _p99(operator_pod.reconciliations(metrics)),
        "pushes": operator_pod.pushes(metrics),
        "pushes_failed": operator_pod.failed_pushes(metrics),
        "writes": operator_pod.by_label(metrics, "headway_operator_writes_total"),
    }


def wait_until_settled(fake: FakeCluster, memory: Memory, begun: float) -> int | None:
    """Seconds until the operator's last write; None if it did not stop writing."""
    last_write = time.monotonic()
    deadline, mark = last_write + _SETTLED_WITHIN_S, Mark.now(fake.audit_log)
    while time.monotonic() < deadline:
        time.sleep(_SAMPLE_S)
        memory.look()
        writes, mark = mark.writes(operator_pod.USER), Mark.now(fake.audit_log)
        if writes:
            last_write = time.monotonic()
            print(f"waiting for quiet: {len(writes)} writes, the last {writes[-1]}", flush=True)
        elif time.monotonic() - last_write >= _QUIET_S:
            return round(last_write - begun)
    return None


def measure_idle(fake: FakeCluster, memory: Memory, idle_s: float) -> dict[str, Any]:
    """What the operator does while nothing happens."""
    print(f"idle for {idle_s:.0f} s", flush=True)
    mark, before, begun = Mark.now(fake.audit_log), memory.pod.metrics(), time.monotonic()
    while (left_s := begun + idle_s - time.monotonic()) > 0:
        time.sleep(min(_SAMPLE_S, left_s))
        memory.look()
    after, elapsed_s = memory.pod.metrics(), time.monotonic() - begun
    writes = mark.writes(operator_pod.USER)
    cpu_s = operator_pod.cpu_seconds(after) - operator_pod.cpu_seconds(before)
    reconciled = histogram.since(
        operator_pod.reconciliations(after), operator_pod.reconciliations(before)
    )
    failed = operator_pod.failed_pushes(after) - operator_pod.failed_pushes(before)
    return {
        "idle_seconds": round(elapsed_s),
        "idle_writes": len(writes),
        "idle_writes_of": dict(Counter(" ".join(each.split()[:2]) for each in writes)),
        "idle_lease_renewals": mark.lease_writes(operator_pod.USER),
        "idle_cpu_share": round(cpu_s / elapsed_s, 4),
        "idle_memory_mib": memory.last_mib,
        "idle_reconcile_p99_s": _p99(reconciled),
        "idle_pushes_failed": failed,
    }


def _p99(buckets: dict[float, float]) -> float | None:
    return _rounded(histogram.quantile(buckets, _PERCENTILE), 4)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _snake(kind: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in kind).lstrip("_")


if __name__ == "__main__":
    sys.exit(main())
