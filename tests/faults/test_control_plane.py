"""What only watches and tunes is gone: engines serve on, and are found as they were."""

from __future__ import annotations

import pytest

from tests.e2e import stack
from tests.e2e.service import Service, identity
from tests.faults.conftest import RecordFault

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
