"""What only watches and tunes is gone: engines serve on, and are found as they were."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import pytest

from tests.e2e import stack
from tests.e2e.kube import Cluster
from tests.e2e.service import Service, identity
from tests.e2e.waiting import wait_until
from tests.faults.conftest import RecordFault
from tests.faults.operator_told import OperatorTold

pytestmark = pytest.mark.cluster

AWAY_S = 60


def test_api_server_gone(chat: Service, record: RecordFault) -> None:
    """The API server gone for a minute.

    The process of the API server is stopped and started again a minute later. Nothing else is
    touched: node, containers and operator run on.
    """
    (before,) = chat.pods()
    with record(chat) as fault:
        fault.cause("the API server is stopped")
        stack.lab("api-server", "stop")
        try:
            fault.watch_for(AWAY_S)
        finally:
            fault.mend("the API server is started")
            stack.lab("api-server", "start")
        # Until it has heard of the node again Kubernetes may call its pods unready.
        fault.recovered(chat)
        # The operator decides again, under its old term or a new one.
        fault.did("scheduling.maxBatchSize changes")
        chat.patch({"spec": {"scheduling": {"maxBatchSize": 32}}})
        chat.wait_for("PolicyApplied", "True", timeout_s=120)
        fault.did("the engine has the new batch size")
        chat.patch({"spec": {"scheduling": {"maxBatchSize": None}}})
        chat.wait_for("PolicyApplied", "True", timeout_s=120)
    (after,) = chat.pods()
    assert identity(after) == identity(before)
    assert any(not each.answered for each in fault.recording.samples)
    assert fault.recording.cut() == []


BINDINGS = (("clusterrolebinding", "headway"), ("rolebinding", "headway-leadership"))


@contextlib.contextmanager
def without_rights(cluster: Cluster) -> Iterator[None]:
    """The operator's bindings are gone; afterwards they are there as they were."""
    there = ("-n", stack.OPERATOR_NAMESPACE)
    kept = [json.loads(cluster.kubectl("get", *each, *there, "-o", "json")) for each in BINDINGS]
    for each in kept:
        for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
            each["metadata"].pop(name, None)
    for kind, name in BINDINGS:
        cluster.kubectl("delete", kind, name, *there)
    try:
        yield
    finally:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": kept})
        cluster.kubectl("create", "-f", "-", *there, stdin=text)


def test_api_server_refuses(
    chat: Service, record: RecordFault, operator_told: OperatorTold
) -> None:
    """An API server that refuses the operator for two minutes.

    The operator's ClusterRoleBinding and RoleBinding are deleted, so that everything it asks for is
    answered 403. The API server is started anew then, as watches that are open go on without
    rights. Meanwhile the spec changes and one of the service's objects is deleted. Two minutes
    later, when the alert fires, the bindings are made again.
    """
    (before,), operator = chat.pods(), operator_told.pod()
    budget = chat.cluster.get("poddisruptionbudget", chat.name, chat.namespace)["metadata"]["uid"]
    with record(chat) as fault:
        fault.cause("the operator's bindings are deleted")
        with without_rights(chat.cluster):
            fault.did("the API server is started anew")
            stack.lab("api-server", "stop")
            stack.lab("api-server", "start")
            fault.watch_for(30)
            fault.did("scheduling.maxBatchSize changes; the PodDisruptionBudget is deleted")
            chat.patch({"spec": {"scheduling": {"maxBatchSize": 32}}})
            chat.cluster.kubectl("delete", "poddisruptionbudget", chat.name, "-n", chat.namespace)
            assert operator_told.metrics()["headway_operator_leader"] == 0
            assert operator_told.condition(chat, "Ready") is None
            fault.did("the operator's metrics: it does not lead, and shows no condition")
            operator_told.wait_alert("firing", "HeadwayOperatorDown", timeout_s=200)
            fault.did("the alert HeadwayOperatorDown fires")
            fault.mend("the bindings are made again")
        chat.wait_for("PolicyApplied", "True", timeout_s=60)
        fault.did("the engine has the new batch size")
        wait_until(
            lambda: chat.cluster.list("poddisruptionbudget", chat.namespace),
            lambda found: found and found[0]["metadata"]["uid"] != budget,
            timeout_s=60,
            what="a new PodDisruptionBudget",
        )
        fault.did("the PodDisruptionBudget is there again")
        operator_told.wait_alert("", "HeadwayOperatorDown", timeout_s=60)
        fault.did("the alert HeadwayOperatorDown is over")
        fault.recovered(chat)
        assert operator_told.condition(chat, "Ready") == 1
    chat.patch({"spec": {"scheduling": {"maxBatchSize": None}}})
    chat.wait_for("PolicyApplied", "True", timeout_s=60)
    (after,) = chat.pods()
    assert identity(after) == identity(before)
    assert identity(operator_told.pod()) == identity(operator)
    assert fault.recording.cut() == []


def test_prometheus_gone(chat: Service, record: RecordFault) -> None:
    """Prometheus gone for a minute.

    The process of Prometheus is stopped and started again a minute later.
    """
    (before,) = chat.pods()
    chat.wait_for("MetricsAvailable", "True", timeout_s=180, reason="Prometheus")
    with record(chat) as fault:
        fault.cause("Prometheus is stopped")
        stack.lab("prometheus", "stop")
        try:
            fault.shown(chat, "MetricsAvailable", "True", "DirectScrape")
            fault.watch_for(AWAY_S)
        finally:
            fault.mend("Prometheus is started")
            stack.lab("prometheus", "start")
        chat.wait_for("MetricsAvailable", "True", timeout_s=180, reason="Prometheus")
        fault.recovered(chat)
    (after,) = chat.pods()
    assert identity(after) == identity(before)
    assert fault.recording.failed() == []
    assert fault.seen("event", "DirectScrape")
