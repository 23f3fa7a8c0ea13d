"""The loop on real parts: Prometheus, the operator's decisions, the running engine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from headway_operator.observe.engine_metrics.names import CLASS_FIELDS, FIELDS
from headway_runtime.policy import Stamp
from tests.e2e import faults, stack
from tests.e2e.kube import Cluster
from tests.e2e.load import Load
from tests.e2e.policies import Sidecar
from tests.e2e.prometheus import Prometheus
from tests.e2e.service import Service, identity
from tests.e2e.waiting import polling, until, wait_until

pytestmark = pytest.mark.cluster

MODEL = "smollm2"
CAP = 512
OPERATOR_PODS = "app.kubernetes.io/component=operator"
IMPOSSIBLE = {"ttftMilliseconds": 60_000, "tpotMilliseconds": 1}
EASY = {"ttftMilliseconds": 600_000, "tpotMilliseconds": 600_000}
TWO_TICKS_SECONDS = 12
"""Somewhat more than the operator takes for two rounds of decisions."""


class Lowered(NamedTuple):
    """A service whose token budget was lowered.

    Attributes:
        service: the service, which misses a target for ever.
        pod: its pod as it was before.
        failed: what clients saw of the requests that failed meanwhile.
    """

    service: Service
    pod: dict[str, Any]
    failed: list[str]


def promised(targets: dict[str, int]) -> list[dict[str, Any]]:
    """The classes, with these targets for ``interactive``."""
    return [{"name": "interactive", **targets}, {"name": "batch", "deadlineSeconds": 600}]


@pytest.fixture(scope="module")
def tuned(chat: Service) -> Iterator[Service]:
    """The warm service with caps that are known, as the operator would find it without load."""
    scheduling = {"mode": "Act", "tokenBudget": CAP, "maxBatchSize": 32}
    with chat.changed({"scheduling": scheduling, "classes": promised(EASY)}):
        yield chat


@pytest.fixture(scope="module")
def lowered(tuned: Service, api_url: str) -> Lowered:
    """The same once a target that nothing keeps has brought its token budget down."""
    (pod,) = tuned.pods()
    tuned.wait_for("MetricsAvailable", "True", timeout_s=180, reason="Prometheus")
    promise(tuned, IMPOSSIBLE)

    # What is in force says nothing: the planner takes less by itself where a target is missed.
    def lacking() -> str:
        budget = held(tuned, api_url)["tokenBudget"]
        return "" if budget is not None and budget < CAP / 2 else f"a token budget of {budget}"

    return Lowered(tuned, pod, under_load(tuned, lacking, timeout_s=240))


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
    service.patch({"spec": {"classes": promised(targets)}})


def under_load(service: Service, lacking: Callable[[], str], timeout_s: float) -> list[str]:
    """Keep a load up until nothing is lacking. Returns the failures that clients saw."""
    url = f"http://{service.cluster_ip()}"

    async def wait() -> list[str]:
        async with Load(
            url, MODEL, streams=4, max_tokens=12, traffic_class="interactive", patience_s=30
        ) as load:
            await until(lacking, timeout_s)
        return load.failed()

    return asyncio.run(wait())


def settled(service: Service, api_url: str) -> dict[str, Any]:
    """The policy once its token budget stays: for a moment after a load it is still moved."""
    before, since_s = held(service, api_url), time.monotonic()
    for policy in polling(lambda: held(service, api_url), 120, period_s=1):
        if policy["tokenBudget"] != before["tokenBudget"]:
            since_s = time.monotonic()
        elif time.monotonic() - since_s > TWO_TICKS_SECONDS:
            return policy
        before = policy
    raise TimeoutError("the token budget is moved without load")


def wait_for_epoch_after(service: Service, api_url: str, before: Stamp) -> dict[str, Any]:
    """The first policy of a later term than a stamp's; within a term counters may go on."""
    return wait_until(
        lambda: held(service, api_url),
        lambda policy: stamp(policy).epoch > before.epoch,
        timeout_s=120,
        what=f"a policy of a term after {before.epoch}",
        period_s=1,
    )


def selector(service: Service) -> str:
    return f'namespace="{service.namespace}",headway_service="{service.name}"'


def test_every_metric_that_decisions_read_is_exposed_by_a_real_pod(
    tuned: Service, prometheus: Prometheus
) -> None:
    promise(tuned, EASY)
    metrics = (*FIELDS.values(), *CLASS_FIELDS.values())

    def lacking() -> str:
        # All of them here: what is told of the last seconds ends with the load.
        found = {each: prometheus.value(f"{each}{{{selector(tuned)}}}") for each in metrics}
        return ", ".join(each for each, value in found.items() if value is None or not value >= 0)

    assert under_load(tuned, lacking, timeout_s=120) == []
    count = f'count({{__name__=~"headway_.*",{selector(tuned)}}})'
    assert prometheus.wait_for(count, timeout_s=30) <= 38 + 4 * 2


def test_a_missed_target_lowers_the_token_budget_of_the_running_engine(
    lowered: Lowered, prometheus: Prometheus
) -> None:
    service = lowered.service
    assert lowered.failed == []
    theta = prometheus.wait_for(f"headway_theta_ratio{{{selector(service)}}}", timeout_s=30)
    assert 0.2 <= theta <= 0.4
    (after,) = service.pods()
    assert identity(after) == identity(lowered.pod)
    wait_until(
        lambda: [
            event["message"]
            for event in service.cluster.list("events", service.namespace)
            if event["reason"] == "Retuned"
        ],
        lambda told: any(text.startswith("Token budget as declared -> ") for text in told),
        timeout_s=30,
        what="an event that tells of the token budget",
        period_s=1,
    )


def test_an_operator_that_restarts_takes_over_what_the_last_one_had_tuned(
    lowered: Lowered, operator: Cluster, api_url: str
) -> None:
    before = settled(lowered.service, api_url)
    assert before["tokenBudget"] < CAP
    operator.kubectl(
        *("delete", "pod", "-n", stack.OPERATOR_NAMESPACE, "--force", "--grace-period=0"),
        *("-l", OPERATOR_PODS),
    )
    policy = wait_for_epoch_after(lowered.service, api_url, stamp(before))
    assert policy["tokenBudget"] == before["tokenBudget"]


def stamp(policy: dict[str, Any]) -> Stamp:
    return Stamp(*(int(part) for part in policy["stamp"].split(".")))


def test_two_operators_at_once_do_not_fight(
    lowered: Lowered, operator: Cluster, api_url: str
) -> None:
    service = lowered.service
    try:
        # On a busy machine a leader may renew its Lease too late: then another one is looked at.
        for _ in range(2):
            scale_operator(operator, replicas=1)
            before = stamp(held(service, api_url))
            scale_operator(operator, replicas=2)
            policies = polling(lambda: held(service, api_url), 20)
            epochs = {stamp(policy).epoch for policy in policies}
            if epochs == {before.epoch}:
                break
        assert epochs == {before.epoch}
        pods = operator.list("pods", stack.OPERATOR_NAMESPACE, OPERATOR_PODS)
        assert len(pods) == 2
        lease = operator.get("lease", "headway-operator", stack.OPERATOR_NAMESPACE)
        holder = lease["spec"]["holderIdentity"]
        (leader,) = (
            pod["metadata"]["name"] for pod in pods if holder.startswith(pod["metadata"]["name"])
        )
        operator.kubectl(
            *("delete", "pod", leader, "-n", stack.OPERATOR_NAMESPACE, "--ignore-not-found"),
            *("--force", "--grace-period=0"),
        )
        policy = wait_for_epoch_after(service, api_url, before)
        assert policy["tokenBudget"] < CAP
    finally:
        scale_operator(operator, replicas=1)
    service.wait_for("PolicyApplied", "True", timeout_s=90)


def scale_operator(operator: Cluster, replicas: int) -> None:
    deployment = ("deployment", stack.RELEASE, "-n", stack.OPERATOR_NAMESPACE)
    operator.kubectl("scale", *deployment, f"--replicas={replicas}")
    operator.kubectl("rollout", "status", *deployment, "--timeout=180s", timeout_s=200)


def test_without_prometheus_the_pods_are_asked_themselves(
    lowered: Lowered, prometheus: Prometheus, api_url: str
) -> None:
    service = lowered.service
    service.wait_for("MetricsAvailable", "True", timeout_s=180, reason="Prometheus")
    promise(service, EASY)
    try:
        stack.lab("prometheus", "stop")
        with pytest.raises(OSError, match="refused"):
            prometheus.query("up")
        service.wait_for("MetricsAvailable", "True", timeout_s=120, reason="DirectScrape")
        # At first it may only be late.
        wait_until(
            lambda: service.condition("MetricsAvailable")["message"],
            lambda message: "Prometheus cannot be reached" in message,
            timeout_s=60,
            what="a message that names Prometheus",
        )
        # Retuning goes on: with a target that is easily kept the budget comes back.
        low = held(service, api_url)["tokenBudget"]

        def lacking() -> str:
            budget = held(service, api_url)["tokenBudget"]
            return "" if budget is None or budget > low else f"a token budget of {budget}"

        assert under_load(service, lacking, timeout_s=240) == []
    finally:
        stack.lab("prometheus", "start")
    service.wait_for("MetricsAvailable", "True", timeout_s=180, reason="Prometheus")


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
    tuned.wait_for("MetricsAvailable", "True", timeout_s=180, reason="Prometheus")
    tuned.wait_for("Ready", "True", timeout_s=120)
    after = held(tuned, api_url)
    kept = ("tokenBudget", "maxBatchSize", "classLimits")
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}


def test_shadow_shows_what_would_have_been_done(tuned: Service, prometheus: Prometheus) -> None:
    def value(name: str) -> float | None:
        return prometheus.value(f"headway_{name}_tokens{{{selector(tuned)}}}")

    def lacking() -> str:
        # Both: the tuned point may be there from before, and a step of Act in the last sample.
        wanted, ceiling = value("policy_token_budget"), value("token_budget_ceiling")
        in_force = value("token_budget")
        is_wanted = wanted is not None and wanted < CAP
        is_only_shown = ceiling is not None and in_force == ceiling
        text = f"wanted are {wanted} of {CAP} tokens, in force {in_force} of {ceiling}"
        return "" if is_wanted and is_only_shown else text

    with tuned.changed({"scheduling": {"mode": "Shadow"}, "classes": promised(IMPOSSIBLE)}):
        assert under_load(tuned, lacking, timeout_s=240) == []
