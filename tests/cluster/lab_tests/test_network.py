"""The lab's network: what is sent to a service stays on the machine."""

import socket

import pytest

from tests.cluster.lab.addresses import SERVICE_NETWORK
from tests.e2e.kube import Cluster
from tests.e2e.waiting import polling

pytestmark = pytest.mark.cluster

NOBODY = SERVICE_NETWORK.removesuffix(".0.0/16") + ".255.254"
PATIENCE_SECONDS = 30.0


@pytest.mark.usefixtures("cluster")
def test_a_service_address_without_endpoint_is_refused() -> None:
    """The way out of the machine may lead to somebody who answers on any address."""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((NOBODY, 80), timeout=5).close()


def test_a_service_address_with_an_endpoint_answers(cluster: Cluster) -> None:
    address = cluster.get("service", "kubernetes", "default")["spec"]["clusterIP"]
    for answers in polling(lambda: accepts(address, 443), PATIENCE_SECONDS):
        if answers:
            return
    pytest.fail(f"{address} did not answer in {PATIENCE_SECONDS:.0f} s")


def accepts(address: str, port: int) -> bool:
    """Whether somebody takes a connection; kube-proxy needs a moment at the start."""
    try:
        socket.create_connection((address, port), timeout=5).close()
    except OSError:
        return False
    return True
