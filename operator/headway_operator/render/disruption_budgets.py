"""PodDisruptionBudgets: how many of a service's pods may be away at once."""

from __future__ import annotations

from typing import Any

from headway_operator.api.labels import ENGINES
from headway_operator.render.names import selector_labels


def disruption_budget_spec(service: str, component: str = ENGINES) -> dict[str, Any]:
    """One pod at a time; one that is broken never blocks a node's drain."""
    return {
        "maxUnavailable": 1,
        "selector": {"matchLabels": selector_labels(service, component)},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
