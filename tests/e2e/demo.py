"""``make demo``: from nothing to a real model's answer, then the running engine retuned."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cluster.lab.addresses import PROMETHEUS_URL
from tests.e2e import mixed_load, stack
from tests.e2e.kube import Cluster
from tests.e2e.load import Load
from tests.e2e.service import KIND, Service, ask, identity, pod_metrics
from tests.e2e.waiting import patiently, polling

NAMESPACE = "demo"
QUESTION = "What is the capital of France?"
MODEL = "smollm2"
METRICS_PORT = 8901
READY_TIMEOUT_S = 600
FIRST_TOKEN_TIMEOUT_S = 30
TIGHT_TPOT_MILLISECONDS = 40
"""Less than two cores need for a token beside batch work, whatever stands in a step."""
SHADOW_SECONDS = 30
SETTINGS = ({"maxBatchSize": 4, "tokenBudget": 64}, {"maxBatchSize": 16, "tokenBudget": 512})

_begin = time.monotonic()
_NOT_SEEN_YET = {
    "status": "Unknown",
    "reason": "Pending",
    "message": "the operator has not looked at it yet",
}


def say(text: str) -> None:
    """A line with the seconds since the demo began."""
    print(f"[{time.monotonic() - _begin:6.1f} s] {text}", flush=True)


@contextmanager
def chapter(number: int, title: str) -> Iterator[None]:
    """A numbered part of the demo."""
    print(f"\n{number}. {title}", flush=True)
    yield


def main() -> int:
    """Run the demo; the exit code says whether it worked."""
    try:
        run()
    except (subprocess.CalledProcessError, OSError, RuntimeError) as error:
        say(f"The demo stopped: {error}")
        print("\n  make demo-down   removes what was started", flush=True)
        return 1
    return 0


def run() -> None:
    """The seven chapters."""
    with chapter(1, "A local Kubernetes, with everything it needs built and cached"):
        cluster, images = stack.bring_up()
    with chapter(2, "helm upgrade --install headway charts/headway"):
        stack.install_chart(cluster, images)
        say(f"the operator is up in namespace {stack.OPERATOR_NAMESPACE}")
    stack.make_namespace(cluster, NAMESPACE)
    service = Service(cluster, NAMESPACE, "chat")
    with chapter(3, "kubectl apply -f examples/chat.yaml"):
        applied_s = time.monotonic()
        cluster.kubectl("apply", "-n", NAMESPACE, "-f", str(stack.EXAMPLES / "chat.yaml"))
        wait_until_ready(service)
        ready_s = time.monotonic() - applied_s
    with cluster.proxy() as api_url:
        base_url = f"{api_url}/api/v1/namespaces/{NAMESPACE}/services/chat:http/proxy"
        with chapter(4, f"The model is asked: {QUESTION}"):
            # Whoever forwards requests may learn of the pod a moment later than the operator.
            answer = patiently(lambda: ask(base_url, MODEL, QUESTION), tries=4, pause_s=5)
            first_token_s = asyncio.run(seconds_to_first_token(base_url))
            print(f"\n    {answer}\n")
            say(f"apply to Ready: {ready_s:.1f} s; a first token then takes {first_token_s:.2f} s")
        if "Paris" not in answer:
            raise RuntimeError("the model's answer does not name Paris")
        with chapter(5, "The running engine is retuned by hand, without a restart"):
            asyncio.run(retune_under_load(service, api_url, base_url))
        with chapter(6, "The loop closes: the operator retunes it from Prometheus, every 5 s"):
            asyncio.run(mixed_load.show(service, base_url, *scenes(service)))
        with chapter(7, "The same in mode Shadow: what would have been done, and is not"):
            service.patch({"spec": {"scheduling": {"mode": "Shadow"}}})
            asyncio.run(mixed_load.show(service, base_url, mixed_load.Scene(SHADOW_SECONDS)))
            service.patch({"spec": {"scheduling": {"mode": "Act"}}})
    say_where_to_look(cluster)


def scenes(service: Service) -> Iterator[mixed_load.Scene]:
    """A target that is kept, one that cannot be, and the first one again."""
    declared = service.read()["spec"]["classes"]
    tight = [
        {**each, "tpotMilliseconds": TIGHT_TPOT_MILLISECONDS}
        if each["name"] == mixed_load.INTERACTIVE
        else each
        for each in declared
    ]
    tpot = next(each["tpotMilliseconds"] for each in declared if "tpotMilliseconds" in each)
    yield mixed_load.Scene(
        24, text=f"{tpot} ms a token: each step is kept short enough, and limits stay as declared"
    )
    yield mixed_load.Scene(
        50,
        {"classes": tight},
        f"kubectl patch {KIND} chat: tpotMilliseconds {TIGHT_TPOT_MILLISECONDS}, more than two "
        "cores can do: what engines take on at once is lowered, as far as it helps",
    )
    yield mixed_load.Scene(
        75,
        {"classes": declared},
        f"kubectl patch {KIND} chat: tpotMilliseconds {tpot} again: it is kept again, and the "
        "token budget comes back once it has been for half a minute",
    )


def wait_until_ready(service: Service) -> None:
    """Wait, saying each time what is being waited for.

    Raises:
        TimeoutError: it did not become Ready.
    """
    said = ""
    for stored in polling(service.read, READY_TIMEOUT_S, period_s=0.5):
        conditions = {c["type"]: c for c in stored.get("status", {}).get("conditions", [])}
        ready = conditions.get("Ready", _NOT_SEEN_YET)
        if ready["status"] == "True":
            say("Ready")
            return
        if said != (said := f"waiting: {ready['reason']}: {ready['message']}"):
            say(said)
    raise TimeoutError(f"not Ready after {READY_TIMEOUT_S} s ({said})")


async def seconds_to_first_token(base_url: str) -> float:
    """Send one streamed request, and others while none is answered, and time its first token.

    Raises:
        RuntimeError: no token came in half a minute.
    """
    deadline = time.monotonic() + FIRST_TOKEN_TIMEOUT_S
    async with Load(base_url, MODEL, streams=0, max_tokens=4) as client:
        while True:
            outcome = await client.one(QUESTION)
            if outcome.first_token_s is not None:
                return outcome.first_token_s
            if time.monotonic() > deadline:
                raise RuntimeError(f"no token came: {outcome.error}")
            await asyncio.sleep(0.5)


async def retune_under_load(service: Service, api_url: str, base_url: str) -> None:
    """Stream eight answers at once, change the policy twice, show what the engine does."""
    before = service.pods()[0]
    header = ("s", "max batch", "token budget", "running", "waiting", "policy")
    print("    " + " ".join(f"{name:>12}" for name in header), flush=True)
    async with Load(base_url, MODEL, streams=8, max_tokens=16) as load:
        await show_engine(service, api_url, seconds=6)
        for setting in SETTINGS:
            print(f"    kubectl patch {KIND} chat: spec.scheduling {setting}", flush=True)
            await asyncio.to_thread(service.patch, {"spec": {"scheduling": setting}})
            await show_engine(service, api_url, seconds=6)
    nothing = dict.fromkeys(SETTINGS[0])
    await asyncio.to_thread(service.patch, {"spec": {"scheduling": nothing}})
    after = service.pods()[0]
    if identity(before) != identity(after):
        raise RuntimeError("the engine was restarted")
    say(
        f"same pod, same container, no restart; {len(load.outcomes)} requests streamed meanwhile, "
        f"{len(load.failed())} failed"
    )


async def show_engine(service: Service, api_url: str, seconds: int) -> None:
    """One line a second of what the engine's own records say."""
    pod = (await asyncio.to_thread(service.pods))[0]["metadata"]["name"]
    for _ in range(seconds):
        await asyncio.sleep(1)
        metrics = await asyncio.to_thread(
            pod_metrics, api_url, service.namespace, pod, METRICS_PORT
        )
        print("    " + " ".join(f"{value:>12}" for value in engine_row(metrics)), flush=True)


def engine_row(metrics: dict[str, float]) -> tuple[str, ...]:
    """The columns of the table, from a pod's metrics."""

    def value(name: str) -> str:
        found = [v for key, v in metrics.items() if key.split("{")[0] == name]
        return f"{found[0]:.0f}" if found else "-"

    names = (
        "headway_max_batch_requests",
        "headway_token_budget_tokens",
        "headway_running_requests",
        "headway_waiting_requests",
    )
    policy = ".".join(
        value(f"headway_policy_{part}") for part in ("generation", "epoch", "counter")
    )
    return (f"{time.monotonic() - _begin:.0f}", *(value(name) for name in names), policy)


def say_where_to_look(cluster: Cluster) -> None:
    """What a user would do next."""
    print(f"""
Where to look next
    export KUBECONFIG={cluster.kubeconfig} PATH={cluster.bin_directory}:$PATH
    kubectl get {KIND} -A
    kubectl -n {NAMESPACE} describe {KIND} chat
    kubectl -n {NAMESPACE} get events
    kubectl -n {stack.OPERATOR_NAMESPACE} logs deployment/{stack.RELEASE}
    curl -s {PROMETHEUS_URL}/api/v1/query -d 'query=headway_theta_ratio'
    make demo-down                                 removes everything that was started
""")


if __name__ == "__main__":
    sys.exit(main())
