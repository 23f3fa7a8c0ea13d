"""``spec.scaling``: how many pods there are, and who decides it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from headway_operator.api.activator import Activator
from headway_operator.api.base import ApiModel, Rule, rules

Replicas = Annotated[int, Field(ge=1, le=1000)]


class Scaling(ApiModel):
    """How many pods there are. A change is applied live, without a restart of any."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "self.minReplicas <= self.maxReplicas",
                "scaling.minReplicas must be at most scaling.maxReplicas",
            )
        )
    )

    mode: Literal["External", "Operator"] = "External"
    """`External`: spec.replicas, which you, an HPA or KEDA set through the scale subresource.
    `Operator`: Headway adds and removes pods by the work that requests bring, between minReplicas
    and maxReplicas; spec.replicas means nothing then and must stay as it is."""

    min_replicas: Annotated[int, Field(ge=0, le=1000)] = 1
    """Least pods in mode Operator. 0, in either mode: a service that nobody uses has no pods. The
    last ones go after idleSeconds (in mode External when replicas is 0); an activator holds the
    requests that come then, and the operator starts a pod for them."""

    max_replicas: Replicas = 10
    """Most pods in mode Operator."""

    target_load_percent: Annotated[int, Field(ge=10, le=95)] = 80
    """How much of what an engine can do within its objectives it is to be asked for. Less leaves
    more for bursts."""

    forecast_seconds: Annotated[int, Field(ge=0, le=3600)] = 60
    """How far ahead load that grows is looked at: about the time in which a pod starts."""

    stabilization_seconds: Annotated[int, Field(ge=0, le=86_400)] = 300
    """Pods are removed only when they were not needed for so long."""

    idle_seconds: Annotated[int, Field(ge=30, le=604_800)] = 600
    """How long engines must have had nothing to do before the last ones go. Only with minReplicas
    0."""

    priority: Annotated[int, Field(ge=-1000, le=1000)] = 0
    """Where the operator has a GPU quota: services with a higher number get their GPUs first, those
    with the same one in proportion to what each misses. Nobody gets less than minReplicas. Says
    nothing about pods once they run; engine.priorityClassName does."""

    activator: Annotated[Activator, Field(json_schema_extra={"default": {}})] = Activator()
    """Who answers while there is no engine. Only with minReplicas 0."""

    @property
    def may_be_zero(self) -> bool:
        """Whether a service that nobody uses has no pods."""
        return self.min_replicas == 0


IN_FULL = {
    "default": {**Scaling().model_dump(by_alias=True, exclude={"activator"}), "activator": {}}
}
"""The API server holds a default against its rules before it fills in fields."""
