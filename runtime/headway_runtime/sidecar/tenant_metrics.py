"""Metrics of the tenants with the most service, summed over the pod's engine processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, Metric

from headway_runtime.scheduling.tenants.totals import OTHERS, PLACES, TenantTotals


def tenant_metrics(totals: Mapping[str, TenantTotals]) -> Iterator[Metric]:
    """Metrics of these tenants; no series where nobody is told apart.

    Args:
        totals: by tenant.
    """
    requests, attained, tokens = _metrics()
    for name, each in _bounded(totals).items():
        requests.add_metric([name], each.requests)
        attained.add_metric([name], each.attained)
        tokens.add_metric([name, "Prompt"], each.prompt_tokens)
        tokens.add_metric([name, "Generated"], each.generated_tokens)
    return iter((requests, attained, tokens))


def _metrics() -> tuple[CounterMetricFamily, CounterMetricFamily, CounterMetricFamily]:
    return (
        CounterMetricFamily(
            "headway_tenant_requests",
            "Requests that ended; those their clients gave up are left out.",
            labels=["tenant"],
        ),
        CounterMetricFamily(
            "headway_tenant_attained_requests",
            "Requests that met every objective of their class.",
            labels=["tenant"],
        ),
        CounterMetricFamily(
            "headway_tenant_tokens",
            "Tokens computed for requests that ended.",
            labels=["tenant", "kind"],
        ),
    )


def _bounded(totals: Mapping[str, TenantTotals]) -> dict[str, TenantTotals]:
    """At most so many names, however many engine processes there are."""
    named = [name for name in totals if name != OTHERS]
    if not named:
        return {}
    shown = sorted(named, key=lambda name: (-sum(totals[name][2:]), name))[:PLACES]
    rest = totals.get(OTHERS, TenantTotals())
    return {**{name: totals[name] for name in sorted(shown)}, OTHERS: rest}
