"""The loop on real parts: Prometheus, the operator's decisions, the running engine."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headway_operator.observe.engine_metrics.names import CLASS_FIELDS, FIELDS
from headway_runtime.policy import Stamp
from tests.e2e import faults, stack
from tests.e2e.kube import Cluster
from tests.e2e.load import Load
from tests.e2e.policies import Sidecar
from tests.e2e.prometheus import Prometheus
from tests.e2e.service import Service, condition_of, polling

pytestmark = pytest.mark.cluster

MODEL = "smollm2"
CAP = 512
OPERATOR_PODS = "app.kubernetes.io/component=operator"
IMPOSSIBLE = {"ttftMilliseconds": 60_000, "tpotMilliseconds": 1}
EASY = {"ttftMilliseconds": 600_000, "tpotMilliseconds": 600_000}


@pytest.fixture(scope="module")
def tuned(chat: Service) -> Service:
    """The warm service with caps that are known, as the operator would find it without load."""
    chat.patch({"spec": {"scheduling": {"mode": "Act", "tokenBudget": CAP, "maxBatchSize": 32}}})
    return chat


@pytest.fixture(scope="module")
def prometheus(cluster: Cluster) -> Prometheus:
    """The cluster's."""
    assert cluster.kubeconfig.exists()
    return Prometheus()


def sidecar(service: Service, api_url: str) -> Sidecar:
    (pod,) = service.pods()
    return Sidecar(api_url, service.namespace, str(pod["metadata"]["name"]))


def held(service: Service, api_url: str) -> dict[str, Any]:
    """What the pod's policy says now."""
    policy: dict[str, Any] = sidecar(service, api_url).status()["policy"]
    return policy


def promise(service: Service, targets: dict[str, int]) -> None:
    """Change what is promised to the class `interactive`, and only that."""
    batch = {"name": "batch", "deadlineSeconds": 600}
    service.patch({"spec": {"classes": [{"name": "interactive", **targets}, batch]}})


@asynccontextmanager
async def interactive_load(service: Service) -> AsyncIterator[Load]:
    url = f"http://{service.cluster_ip()}"
    load = Load(url, MODEL, streams=4, max_tokens=12, traffic_class="interactive", patience_s=30)
    async with load:
        yield load


def under_load(service: Service, until: Callable[[], bool], timeout_s: float) -> list[str]:
    """Keep the load up until something holds. Returns the failures that clients saw."""

    async def wait() -> list[str]:
        async with interactive_load(service) as load:
            for _ in range(int(timeout_s)):
                if await asyncio.to_thread(until):
                    break
                await asyncio.sleep(1)
            else:
                raise TimeoutError("it did not come about under load")
        return load.failed()

    return asyncio.run(wait())


def selector(service: Service) -> str:
    return f'namespace="{service.namespace}",headway_service="{service.name}"'


def test_every_metric_that_decisions_read_is_exposed_by_a_real_pod(
    tuned: Service, prometheus: Prometheus
) -> None:
    promise(tuned, EASY)

    def measured() -> bool:
        text = f"headway_class_recent_tpot_ratio{{{selector(tuned)}}}"
        return prometheus.value(text) is not None

    assert under_load(tuned, measured, timeout_s=120) == []
    for metric in (*FIELDS.values(), *CLASS_FIELDS.values()):
        text = f"{metric}{{{selector(tuned)}}}"
        assert prometheus.wait_for(text, timeout_s=30) >= 0, metric
    series = prometheus.value(f'count({{__name__=~"headway_.*",{selector(tuned)}}})')
    assert series is not None
    assert series <= 38 + 4 * 2


def test_a_missed_target_lowers_the_token_budget_of_the_running_engine(
    tuned: Service, prometheus: Prometheus, api_url: str
) -> None:
    (before,) = tuned.pods()
    tuned.wait_for("MetricsAvailable", "True", timeout_s=90, reason="Prometheus")
    promise(tuned, IMPOSSIBLE)

    # What is in force says nothing: the planner takes less by itself where a target is missed.
    def lowered() -> bool:
        budget = held(tuned, api_url)["tokenBudget"]
        return budget is not None and budget < CAP / 2

    assert under_load(tuned, lowered, timeout_s=240) == []
    theta = prometheus.value(f"headway_theta_ratio{{{selector(tuned)}}}")
    assert theta is not None
    assert 0.2 <= theta <= 0.4
    (after,) = tuned.pods()
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]
    events = tuned.cluster.list("events", tuned.namespace)
    told = [event["message"] for event in events if event["reason"] == "Retuned"]
    assert any(text.startswith("Token budget as declared -> ") for text in told), told


def test_an_operator_that_restarts_takes_over_what_the_last_one_had_tuned(
    tuned: Service, operator: Cluster, api_url: str
) -> None:
    before = held(tuned, api_url)
    assert before["tokenBudget"] < CAP
    operator.kubectl(
        *("delete", "pod", "-n", stack.OPERATOR_NAMESPACE, "--force", "--grace-period=0"),
        *("-l", OPERATOR_PODS),
    )
    for policy in polling(lambda: held(tuned, api_url), 120, period_s=1):
        if stamp(policy) > stamp(before):
            break
    assert stamp(policy).epoch > stamp(before).epoch
    assert policy["tokenBudget"] == before["tokenBudget"]


def stamp(policy: dict[str, Any]) -> Stamp:
    return Stamp(*(int(part) for part in policy["stamp"].split(".")))


def test_two_operators_at_once_do_not_fight(
    tuned: Service, operator: Cluster, api_url: str
) -> None:
    deployment = ("deployment", stack.RELEASE, "-n", stack.OPERATOR_NAMESPACE)
    before = stamp(held(tuned, api_url))
    operator.kubectl("scale", *deployment, "--replicas=2")
    try:
        operator.kubectl("rollout", "status", *deployment, "--timeout=180s", timeout_s=200)
        epochs = {stamp(policy).epoch for policy in polling(lambda: held(tuned, api_url), 20)}
        assert epochs == {before.epoch}
        pods = operator.list("pods", stack.OPERATOR_NAMESPACE, OPERATOR_PODS)
        assert len(pods) == 2
        lease = operator.get("lease", "headway-operator", stack.OPERATOR_NAMESPACE)
        holder = lease["spec"]["holderIdentity"]
        (leader,) = (
            pod["metadata"]["name"] for pod in pods if holder.startswith(pod["metadata"]["name"])
        )
        operator.kubectl(
            *("delete", "pod", leader, "-n", stack.OPERATOR_NAMESPACE),
            *("--force", "--grace-period=0"),
        )
        for policy in polling(lambda: held(tuned, api_url), 120, period_s=1):
            if stamp(policy).epoch > before.epoch:
                break
        assert stamp(policy).epoch > before.epoch
        assert policy["tokenBudget"] < CAP
    finally:
        operator.kubectl("scale", *deployment, "--replicas=1")
        operator.kubectl("rollout", "status", *deployment, "--timeout=120s", timeout_s=150)
    tuned.wait_for("PolicyApplied", "True", timeout_s=90)


def test_without_prometheus_the_pods_are_asked_themselves(
    tuned: Service, prometheus: Prometheus, api_url: str
) -> None:
    tuned.wait_for("MetricsAvailable", "True", timeout_s=90, reason="Prometheus")
    promise(tuned, EASY)
    stack.lab("prometheus", "stop")
    try:
        with pytest.raises(OSError, match="refused"):
            prometheus.query("up")
        found = tuned.wait_for("MetricsAvailable", "True", timeout_s=120, reason="DirectScrape")
        assert "Prometheus cannot be reached" in found["message"]
        # Retuning goes on: with a target that is easily kept the budget comes back.
        low = held(tuned, api_url)["tokenBudget"]

        def raised() -> bool:
            budget = held(tuned, api_url)["tokenBudget"]
            return bool(budget is None or budget > low)

        assert under_load(tuned, raised, timeout_s=240) == []
    finally:
        stack.lab("prometheus", "start")
    tuned.wait_for("MetricsAvailable", "True", timeout_s=120, reason="Prometheus")


def test_without_any_metrics_everything_is_held(tuned: Service, api_url: str) -> None:
    tuned.wait_for("MetricsAvailable", "True", timeout_s=90)
    (pod,) = tuned.pods()
    (sidecar_status,) = (
        each for each in pod["status"]["initContainerStatuses"] if each["name"] == "headway-sidecar"
    )
    before = held(tuned, api_url)
    # Neither Prometheus nor the operator gets an answer from it.
    with faults.frozen(sidecar_status["containerID"]):
        found = tuned.wait_for("MetricsAvailable", "False", timeout_s=180, reason="NoMetrics")
        assert "stay tuned as they are" in found["message"]
    tuned.wait_for("MetricsAvailable", "True", timeout_s=120, reason="Prometheus")
    tuned.wait_for("Ready", "True", timeout_s=120)
    after = held(tuned, api_url)
    kept = ("tokenBudget", "maxBatchSize", "classLimits")
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}


def test_shadow_shows_what_would_have_been_done(tuned: Service, prometheus: Prometheus) -> None:
    tuned.patch({"spec": {"scheduling": {"mode": "Shadow"}}})
    promise(tuned, IMPOSSIBLE)
    try:

        def value(name: str) -> float | None:
            return prometheus.value(f"headway_{name}_tokens{{{selector(tuned)}}}")

        def only_shown() -> bool:
            # Both: the tuned point may be there from before, and a step of Act in the last sample.
            budget, ceiling = value("policy_token_budget"), value("token_budget_ceiling")
            is_wanted = budget is not None and budget < CAP
            return is_wanted and ceiling is not None and value("token_budget") == ceiling

        assert under_load(tuned, only_shown, timeout_s=240) == []
    finally:
        tuned.patch({"spec": {"scheduling": {"mode": "Act"}}})
        promise(tuned, EASY)
        with contextlib.suppress(TimeoutError):
            tuned.wait_for("PolicyApplied", "True", timeout_s=60)
    assert condition_of(tuned.read(), "PolicyApplied")["status"] == "True"
