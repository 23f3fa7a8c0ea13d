"""Metrics of the operator itself, on :8081/metrics."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from prometheus_client import Counter, Gauge, Histogram

from headway_operator.api import Condition, ConditionType

_TRUTH = {"True": 1, "False": 0, "Unknown": -1}

RECONCILE_SECONDS = Histogram(
    "headway_operator_reconcile_seconds",
    "Time to observe, decide and act on one service.",
    ["outcome"],
    buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10),
)
QUEUE_DEPTH = Gauge("headway_operator_queue_depth", "Services that wait to be looked at.")
PUSH_SECONDS = Histogram(
    "headway_operator_push_seconds",
    "Time to push a policy to one pod.",
    buckets=(0.003, 0.01, 0.03, 0.1, 0.3, 1, 3),
)
PUSHES = Counter("headway_operator_pushes", "Policies pushed to pods, by answer.", ["outcome"])
WRITES = Counter("headway_operator_writes", "Objects written, by kind.", ["kind"])
RETUNES = Counter("headway_operator_retunes", "Values retuned in policies.", ["what"])
COLLECT_SECONDS = Histogram(
    "headway_operator_collect_seconds",
    "Time to collect the metrics of all pods.",
    buckets=(0.01, 0.03, 0.1, 0.3, 1, 3, 10),
)
METRICS_SOURCE = Gauge(
    "headway_operator_metrics_source",
    "Pods whose metrics came from there in the last collection.",
    ["source"],
)
DEGRADATION = Gauge(
    "headway_operator_degradation_rung",
    "Place in its ladder of the last step that a service stands on; absent without one.",
    ["service_namespace", "service"],
)
CONDITION = Gauge(
    "headway_operator_condition",
    "A condition of a service: 1 True, 0 False, -1 Unknown; absent where there is none.",
    ["service_namespace", "service", "condition"],
)
LEADER = Gauge("headway_operator_leader", "1 while this process leads, and sees the cluster.")
GPUS = Gauge(
    "headway_operator_gpus",
    "GPUs of all services, where they share a quota: what there is, is given, and is wanted.",
    ["what"],
)
SERVICES = Gauge("headway_operator_services", "InferenceServices that are watched.")
UNREACHED = Gauge(
    "headway_operator_unreached_activators",
    "Services whose activators are ready and do not answer the operator.",
)


def show_rung(namespace: str, service: str, rung: int) -> None:
    """Show where a service stands in its ladder; 0 where it stands on no step, or is gone."""
    if rung:
        DEGRADATION.labels(service_namespace=namespace, service=service).set(rung)
        return
    with contextlib.suppress(KeyError):
        DEGRADATION.remove(namespace, service)


def show_conditions(namespace: str, service: str, conditions: Iterable[Condition]) -> None:
    """Show all conditions of a service; none of one that is gone."""
    shown = {each.type: _TRUTH[each.status] for each in conditions}
    for kind in ConditionType:
        if kind in shown:
            labels = {"service_namespace": namespace, "service": service, "condition": kind}
            CONDITION.labels(**labels).set(shown[kind])
            continue
        with contextlib.suppress(KeyError):
            CONDITION.remove(namespace, service, kind)


def show_nothing(namespace: str, service: str) -> None:
    """The service is gone."""
    show_rung(namespace, service, 0)
    show_conditions(namespace, service, ())


def show_gpus(quota: int | None, running: int, wanted: int) -> None:
    """Show how far the GPUs go that services share; nothing without a quota to speak of."""
    if quota is None:
        GPUS.clear()
        return
    for what, gpus in (("quota", quota), ("running", running), ("wanted", wanted)):
        GPUS.labels(what=what).set(gpus)
