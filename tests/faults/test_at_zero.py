"""Services without pods: who wakes and hangs, and an operator that is told of nobody who asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from headway_operator.api.labels import POLICY_PORT
from headway_operator.decide.scaling import MOST_UNREACHED, UNATTENDED_SECONDS
from tests.e2e import faults
from tests.e2e.kube import Cluster
from tests.e2e.service import KIND, Service, ask, identity
from tests.e2e.waiting import wait_until
from tests.faults.changing import gpus
from tests.faults.conftest import GPUS, MODEL, RecordFault, spec_of_chat
from tests.faults.operator_told import OperatorTold
from tests.faults.traffic import Traffic

pytestmark = pytest.mark.cluster

PERIOD_S = 5.0
"""Between two requests: all of them are held until an engine is there."""
START_S = 90
"""How long an engine may take; one that does not hang takes about half of it."""
SLEEPERS = MOST_UNREACHED + 2


def at_zero(document: dict[str, Any]) -> None:
    """The service has no pods until somebody asks."""
    document["spec"] |= {"replicas": 0}
    document["spec"]["scaling"] = {"minReplicas": 0, "activator": {"replicas": 1}}
    document["spec"]["engine"] |= {"startupTimeoutSeconds": START_S}


@pytest.fixture
def sleepers(operator: Cluster, namespace: str) -> Iterator[list[Service]]:
    """Services at zero, with an activator each."""
    gpus(GPUS)
    found = [Service(operator, namespace, f"sleeper-{number}") for number in range(SLEEPERS)]
    document = spec_of_chat(at_zero)
    documents = [{**document, "metadata": {"name": each.name}} for each in found]
    try:
        operator.apply(yaml.safe_dump_all(documents), namespace)
        for each in found:
            each.wait_for("ActivatorReady", "True", timeout_s=120)
        yield found
    finally:
        names = [each.name for each in found]
        operator.kubectl("delete", KIND, *names, "-n", namespace, "--ignore-not-found")
        for each in found:
            wait_until(each.has_pods, lambda has: not has, 120, what=f"no pod of {each.name}")


@pytest.fixture
def sleeper(sleepers: list[Service]) -> Service:
    """One of them."""
    return sleepers[0]


def engine_of(service: Service) -> str:
    """The container in which its only pod's engine runs; empty while it does not."""
    for pod in service.pods():
        for each in pod["status"].get("containerStatuses", []):
            if each["name"] == "engine" and "running" in each["state"]:
                return str(each["containerID"])
    return ""


def test_woken_pod_hangs(
    sleeper: Service, record: RecordFault, operator_told: OperatorTold
) -> None:
    """A woken pod that only hangs.

    A service at zero is asked every 5 s. The engine that is started for it is stopped with SIGSTOP
    while it imports, as on a node that hangs: it neither gets ready nor ends. It may take 90 s to
    start (engine.startupTimeoutSeconds). Then the pod is deleted, as the message says.
    """
    labels = {"service": sleeper.name, "service_namespace": sleeper.namespace}
    with record(sleeper, period_s=PERIOD_S) as fault:
        engine = wait_until(lambda: engine_of(sleeper), bool, 60, what="an engine that runs")
        with faults.frozen(engine):
            fault.cause("SIGSTOP for all processes of the engine of the woken pod")
            assert operator_told.condition(sleeper, "Stalled") == 0
            message = fault.shown(sleeper, "Stalled", "True", "ProgressDeadlineExceeded")
            (pod,) = sleeper.pods()
            name = pod["metadata"]["name"]
            assert message.startswith(f"Pod {name} has not got ready for {START_S} s")
            assert f"`kubectl logs {name} -c engine` says what" in message
            assert "Delete a pod that hangs" in message
            assert operator_told.condition(sleeper, "Stalled") == 1
            operator_told.wait_alert("pending", "HeadwayStalled", 15, **labels)
            fault.did("the operator's gauge of Stalled is 1, the alert HeadwayStalled pending")
            fault.mend("the pod is deleted")
            sleeper.cluster.kubectl("delete", "pod", name, "-n", sleeper.namespace, "--wait=false")
            sleeper.wait_for("Stalled", "False", timeout_s=200)
        sleeper.wait_for("Ready", "True", timeout_s=200, reason="PodsReady")
        fault.recording.marks["recovered"] = fault.now_s()
        assert operator_told.condition(sleeper, "Stalled") == 0
        operator_told.wait_alert("", "HeadwayStalled", 15, **labels)
        fault.did("the operator's gauge of Stalled is 0, and there is no alert")
    assert fault.seen("event", "Normal Woken")
    assert fault.seen("event", "Warning ProgressDeadlineExceeded")
    assert fault.recording.failed() == []


def test_operator_cut_off(
    chat: Service, sleepers: list[Service], record: RecordFault, operator_told: OperatorTold
) -> None:
    """An operator that is cut off from the activators.

    Seven services are at zero, and one that is awake is beside them. In the operator's pod iptables
    drops all from and to port 8900, on which activators tell who asks. Then one of the seven is
    asked every 5 s. When the alert has fired the rules are taken out.
    """
    sleeper, *others = sleepers
    (before,) = chat.pods()
    (operator,) = operator_told.pod()["status"]["containerStatuses"]
    with record(sleeper, period_s=None) as fault:
        traffic = Traffic(f"http://{sleeper.cluster_ip()}", MODEL, PERIOD_S, max_tokens=4)
        with faults.partitioned(operator["containerID"], POLICY_PORT):
            fault.cause(f"nothing from and to port {POLICY_PORT} gets into the operator's pod")
            message = fault.shown(sleeper, "ActivatorReady", "False", "OperatorCutOff")
            assert "none is until it can again" in message
            for each in others:
                each.wait_for("ActivatorReady", "False", 60, reason="OperatorCutOff")
                each.wait_for("Ready", "False", 10, reason="OperatorCutOff")
            fault.did(f"all {SLEEPERS} say OperatorCutOff; one of them is asked from now on")
            traffic.start(fault.begun_s)
            metrics = operator_told.metrics()
            assert metrics["headway_operator_unreached_activators"] == SLEEPERS
            assert {operator_told.condition(each, "ActivatorReady") for each in sleepers} == {0}
            assert ask(f"http://{chat.cluster_ip()}", MODEL, "Who is there?")
            fault.did("the service that is awake answers")
            operator_told.wait_alert("firing", "HeadwayOperatorCutOff", timeout_s=180)
            fault.did("the alert HeadwayOperatorCutOff fires")
            cut_s = fault.now_s() - fault.recording.marks["shown"]
            fault.watch_for(max(0.0, UNATTENDED_SECONDS + 15 - cut_s))
            assert operator_told.alert("HeadwayActivatorNotReady") == ""
            assert [each.name for each in sleepers if each.has_pods()] == []
            fault.did("no service has got a pod")
            fault.mend("the rules are taken out")
        sleeper.wait_for("Ready", "True", timeout_s=200, reason="PodsReady")
        fault.recording.marks["recovered"] = fault.now_s()
        for each in others:
            each.wait_for("Ready", "True", timeout_s=30, reason="Idle")
        assert [each.name for each in others if each.has_pods()] == []
        fault.did("the other services are Ready, Idle, and still without pods")
        assert {operator_told.condition(each, "ActivatorReady") for each in sleepers} == {1}
        operator_told.wait_alert("", "HeadwayOperatorCutOff", timeout_s=15)
        fault.recording.requests = traffic.stop()
    (after,) = chat.pods()
    assert identity(after) == identity(before)
    assert fault.seen("event", "Warning OperatorCutOff")
    assert fault.seen("event", "Normal Woken")
    assert not fault.seen("event", "NoActivator")
    assert fault.recording.failed() == []
