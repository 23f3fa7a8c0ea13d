"""A warm service that faults happen to, and the file that keeps what was recorded."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.lab.volumes import volume_name
from tests.e2e import stack
from tests.e2e.kube import Cluster
from tests.e2e.prometheus import Prometheus
from tests.e2e.service import KIND, Service
from tests.e2e.waiting import wait_until
from tests.faults import results
from tests.faults.operator_told import OperatorTold
from tests.faults.recorder import Fault, is_settled, recorded
from tests.faults.recording import Recording
from tests.faults.traffic import Traffic

NAMESPACE = "headway-faults"
MODEL = "smollm2"
CLAIM = "adapters"
"""Of a volume that one of the faults lacks at first."""
GPUS = 2
"""Fake ones of the node: what one pod and the next one of a rollout need."""

_FAILURE = pytest.StashKey[str]()
"""Of a test that came to its end, whatever became of it; empty if all held."""
_MAX_FAILURE = 300

RecordFault = Callable[..., AbstractContextManager[Fault]]


@pytest.fixture(scope="session")
def api_url(cluster: Cluster) -> Iterator[str]:
    """The API server on loopback."""
    with cluster.proxy() as url:
        yield url


@pytest.fixture(scope="session")
def operator_told(operator: Cluster, api_url: str) -> OperatorTold:
    """The operator's metrics, and the chart's alerts."""
    prometheus = Prometheus()
    prometheus.load_rules(stack.CHART / "files" / "alerts.yaml")
    return OperatorTold(operator, api_url, prometheus)


@pytest.fixture(scope="session")
def namespace(operator: Cluster) -> Iterator[str]:
    """A namespace under the restricted profile; gone afterwards, with everything in it.

    What a run left that was killed goes first.
    """
    if operator.kubectl("get", "namespace", NAMESPACE, "--ignore-not-found"):
        remove_namespace(operator)
    stack.make_namespace(operator, NAMESPACE)
    yield NAMESPACE
    remove_namespace(operator)


def remove_namespace(cluster: Cluster) -> None:
    """Delete the namespace, and the volume of a claim in it that outlives it."""
    cluster.kubectl("delete", KIND, "--all", "-n", NAMESPACE, timeout_s=60)
    if cluster.list("pods", NAMESPACE):
        gone = ("wait", "pod", "--all", "--for=delete", "-n", NAMESPACE, "--timeout=120s")
        cluster.kubectl(*gone, timeout_s=150)
    cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", timeout_s=300)
    cluster.kubectl("delete", "pv", volume_name(NAMESPACE, CLAIM), "--ignore-not-found")


_ONE_FLOATING_THREAD = [
    {"name": "VLLM_CPU_OMP_THREADS_BIND", "value": "nobind"},
    {"name": "OMP_NUM_THREADS", "value": "1"},
]
"""vLLM binds the worker of every engine to the same core: while one works, none could start."""


def on_a_gpu(document: dict[str, Any]) -> None:
    """The engine asks for a GPU, as most do; the local cluster's are numbers only."""
    document["spec"]["engine"]["resources"]["limits"]["nvidia.com/gpu"] = "1"
    document["spec"]["engine"]["env"] += _ONE_FLOATING_THREAD
    for each in document["spec"]["classes"]:
        # No target is too tight for two cores that also start engines: retuning is not the matter.
        if "tpotMilliseconds" in each:
            each |= {"ttftMilliseconds": 600_000, "tpotMilliseconds": 600_000}


def spec_of_chat(change: Callable[[dict[str, Any]], None] | None = None) -> dict[str, Any]:
    """The spec of the warm service, changed if asked."""
    document = stack.example("chat.yaml", on_a_gpu)
    if change is not None:
        change(document)
    return document


@pytest.fixture(scope="session")
def warm(operator: Cluster, namespace: str) -> Service:
    """examples/chat.yaml on a GPU, Ready."""
    stack.lab("fake-gpus", str(GPUS))
    operator.apply(yaml.safe_dump(spec_of_chat()), namespace)
    service = Service(operator, namespace, "chat")
    service.wait_for("Ready", "True", timeout_s=600)
    return service


@pytest.fixture
def chat(warm: Service) -> Service:
    """The warm service with one pod and nothing amiss."""
    return put_right(warm, pods=1)


@pytest.fixture
def few_blocks(warm: Service) -> Service:
    """The same with a KV cache of 12 blocks of 128 tokens."""

    def change(document: dict[str, Any]) -> None:
        document["spec"]["engine"]["args"].append("--num-gpu-blocks-override=12")

    return put_right(warm, pods=1, change=change)


@pytest.fixture
def pair(warm: Service) -> Service:
    """The same with two pods."""
    return put_right(warm, pods=2)


def put_right(
    service: Service, pods: int, change: Callable[[dict[str, Any]], None] | None = None
) -> Service:
    """Whatever an earlier fault left, a service with that many pods and nothing amiss.

    A version that was repaired stays, since another one takes an engine's start.

    Args:
        service: the service.
        pods: how many it is to have.
        change: of the warm service's spec; of what is in it, the model and the engine's arguments
            tell whether it is there already.
    """
    stack.lab("fake-gpus", str(GPUS))
    stored, declared = service.read(), spec_of_chat(change)
    declared["spec"]["replicas"] = pods
    kept = [stored["spec"]["model"], stored["spec"]["engine"]["args"]]
    wanted = [declared["spec"]["model"], declared["spec"]["engine"]["args"]]
    if kept != wanted or stored["spec"]["router"]["enabled"] or not is_settled(stored):
        text = yaml.safe_dump(declared)
        service.cluster.kubectl("replace", "-f", "-", "-n", service.namespace, stdin=text)
    elif stored["spec"]["replicas"] != pods:
        service.patch({"spec": {"replicas": pods}})
    wait_settled(service, pods)
    return service


def wait_settled(service: Service, pods: int = 1, timeout_s: float = 400) -> None:
    """Wait until the service is as its spec wants it, with that many pods and none that stop.

    Raises:
        TimeoutError: it was not.
    """
    selector = f"headway.dev/service={service.name},app.kubernetes.io/component=engine"
    wait_until(
        lambda: (service.read(), len(service.cluster.list("pods", service.namespace, selector))),
        lambda seen: is_settled(seen[0]) and seen[1] == pods,
        timeout_s,
        what="a service with nothing amiss",
        period_s=1,
    )


@pytest.fixture(scope="session")
def results_file(operator: Cluster) -> results.File | None:
    """Where recordings are kept; None where nobody asked for that."""
    path = os.environ.get("HEADWAY_FAULTS")
    return results.File(Path(path), operator) if path else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Keep what did not hold, for the report."""
    if call.when == "call":
        item.stash[_FAILURE] = call.excinfo.exconly(tryshort=True) if call.excinfo else ""
    return (yield)


@pytest.fixture
def record(
    request: pytest.FixtureRequest, api_url: str, results_file: results.File | None
) -> Iterator[RecordFault]:
    """Gives a context manager that records what happens to a service.

    The first line of the test's docstring is the fault's title, the rest says how it is caused.
    The client sends a short request every 2 s unless told otherwise.
    """
    title, _, cause = inspect.cleandoc(request.function.__doc__).partition("\n\n")
    date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    key = request.node.name.removeprefix("test_")
    recording = Recording(key, title.rstrip("."), " ".join(cause.split()), date)

    def record(
        service: Service, period_s: float | None = 2.0, max_tokens: int = 4
    ) -> AbstractContextManager[Fault]:
        traffic = None
        if period_s is not None:
            url = f"http://{service.cluster_ip()}"
            traffic = Traffic(url, MODEL, period_s, max_tokens)
        return recorded(recording, service, api_url, traffic)

    yield record
    failure = request.node.stash.get(_FAILURE, None)
    if failure is None:
        return  # somebody interrupted the run: what was cut short is no result
    recording.failure = failure[:_MAX_FAILURE]
    if results_file is not None and recording.samples:
        results_file.add(recording)
