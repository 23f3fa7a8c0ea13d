"""What the operator's own metrics say, and the alerts that Prometheus makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.e2e import stack
from tests.e2e.kube import Cluster
from tests.e2e.prometheus import Prometheus
from tests.e2e.service import Service, pod_metrics
from tests.e2e.waiting import wait_until

_METRICS_PORT = 8081


@dataclass(frozen=True)
class OperatorTold:
    """The only operator, as those see it who watch it.

    Attributes:
        cluster: where it runs.
        api_url: the API server, reachable without credentials.
        prometheus: scrapes it, and has the chart's alert rules.
    """

    cluster: Cluster
    api_url: str
    prometheus: Prometheus

    def pod(self) -> dict[str, Any]:
        """Its pod."""
        selector = "app.kubernetes.io/name=headway,app.kubernetes.io/component=operator"
        (pod,) = self.cluster.list("pods", stack.OPERATOR_NAMESPACE, selector)
        return pod

    def metrics(self) -> dict[str, float]:
        """All of its metrics, as it answers now."""
        name = self.pod()["metadata"]["name"]
        return pod_metrics(self.api_url, stack.OPERATOR_NAMESPACE, name, _METRICS_PORT)

    def condition(self, service: Service, kind: str) -> float | None:
        """What it shows of a condition: 1 True, 0 False, -1 Unknown; None where it shows none."""
        labels = f"condition={kind},service={service.name},service_namespace={service.namespace}"
        return self.metrics().get(f"headway_operator_condition{{{labels}}}")

    def alert(self, name: str, **labels: str) -> str:
        """State of an alert: ``pending`` or ``firing``; empty while nothing is amiss."""
        wanted = {"alertname": name, **labels}
        matchers = ",".join(f'{key}="{value}"' for key, value in wanted.items())
        found = self.prometheus.query(f"ALERTS{{{matchers}}}")
        return str(found[0].labels["alertstate"]) if found else ""

    def wait_alert(self, state: str, name: str, timeout_s: float, **labels: str) -> None:
        """Wait until an alert has a state.

        Raises:
            TimeoutError: it did not get it.
        """
        wait_until(
            lambda: self.alert(name, **labels),
            lambda found: found == state,
            timeout_s,
            what=f"alert {name} {state or 'over'}",
            period_s=1,
        )
