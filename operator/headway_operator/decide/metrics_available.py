"""The condition MetricsAvailable."""

from __future__ import annotations

from headway_operator.api import ConditionType
from headway_operator.api.labels import SIDECAR
from headway_operator.decide.facts import Facts
from headway_operator.decide.verdict import Verdict
from headway_operator.observe.engine_metrics.sample import Source

SETTLED_SECONDS = 15
"""A source counts once it lasted this long: a single late scrape is no news."""


def metrics_available(facts: Facts) -> Verdict | None:
    """Whether engines can be retuned, and from whose metrics.

    None while it is too early to say: the condition then stays as it is.
    """
    if facts.spec is None:
        return None
    chain = (_nobody, _missing, _available, _nothing)
    return next((found for check in chain if (found := check(facts))), None)


def _nobody(facts: Facts) -> Verdict | None:
    if any(pod.takes_policies for pod in facts.snapshot.pods):
        return None
    return Verdict("Unknown", "NoPods", "No pod is there to expose metrics")


def _missing(facts: Facts) -> Verdict | None:
    name = facts.snapshot.metrics.missing
    if not name:
        return None
    text = (
        f"A pod does not expose {name}: its runtime image is not of this operator's release. "
        "Its engine stays tuned as it is"
    )
    return Verdict("False", "MetricsMissing", text, alarming=True)


def _available(facts: Facts) -> Verdict | None:
    metrics = facts.snapshot.metrics
    settled = metrics.since <= facts.now.unix - SETTLED_SECONDS
    if metrics.source is None or not (settled or _is_told_at_once(facts)):
        return None
    if metrics.source is Source.PROMETHEUS:
        return Verdict("True", "Prometheus", "Read from Prometheus")
    text = f"Read from the pods themselves: {metrics.trouble or 'Prometheus is late'}"
    return Verdict("True", "DirectScrape", text, alarming=metrics.expected)


def _nothing(facts: Facts) -> Verdict | None:
    if facts.snapshot.metrics.source is not None or facts.snapshot.metrics.unasked:
        return None
    limit = facts.now.unix - SETTLED_SECONDS
    started = [
        pod.containers[SIDECAR].running_since or 0.0
        for pod in facts.snapshot.pods
        if pod.takes_policies
    ]
    if not facts.snapshot.metrics.collected or min(started) > limit:
        return None
    text = "No pod answers, nor does Prometheus have samples: engines stay tuned as they are"
    return Verdict("False", "NoMetrics", text, alarming=True)


def _is_told_at_once(facts: Facts) -> bool:
    """Whether it need not last: there were no metrics, and it is no false alarm.

    Prometheus does not know a pod that has just come. That it is asked itself until then is no
    outage.
    """
    before, metrics = _truth(facts), facts.snapshot.metrics
    if before == "False":
        return True
    stands_in = metrics.expected and metrics.source is Source.DIRECT_SCRAPE
    return before != "True" and not stands_in


def _truth(facts: Facts) -> str:
    conditions = facts.snapshot.service.status.conditions
    found = (each.status for each in conditions if each.type == ConditionType.METRICS_AVAILABLE)
    return next(found, "Unknown")
