"""``status``: what the operator reports. Nothing in it changes while nothing happens."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from headway_operator.api.base import ApiModel, list_map


class ConditionType(StrEnum):
    """The conditions of a service."""

    READY = "Ready"
    """Every wanted pod, made from the current spec, answers requests and has a policy; where the
    operator adds pods for load, scaling.minReplicas of them. Without any while nobody uses it
    (reason Idle): the activator takes requests."""
    PROGRESSING = "Progressing"
    """Pods are being started or replaced."""
    MODEL_LOADED = "ModelLoaded"
    """The engines of the current pods have loaded the model."""
    POLICY_APPLIED = "PolicyApplied"
    """Every running pod has acknowledged the current policy and acts on it."""
    METRICS_AVAILABLE = "MetricsAvailable"
    """There are metrics to retune the engines from; the reason says where they come from."""
    SCALING_LIMITED = "ScalingLimited"
    """More pods are needed than scaling.maxReplicas allows, or than can be started."""
    ROUTER_READY = "RouterReady"
    """A pod of the router is ready, and the Service points to it. Only where router.enabled."""
    ACTIVATOR_READY = "ActivatorReady"
    """A pod of the activator is ready, so that the service may have no engine. Only where
    scaling.minReplicas is 0."""
    STALLED = "Stalled"
    """Something is wrong that will not heal by itself."""


class Condition(ApiModel):
    """One aspect of the service's state."""

    type: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Z][A-Za-z]*$")]
    """Ready, Progressing, ModelLoaded, PolicyApplied, MetricsAvailable, ScalingLimited,
    RouterReady, ActivatorReady or Stalled."""

    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""

    reason: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Z][A-Za-z]*$")]
    """Why, as one word for programs."""

    message: Annotated[str, Field(max_length=1024)]
    """Why, for people."""

    last_transition_time: Annotated[
        str, Field(max_length=40, json_schema_extra={"format": "date-time"})
    ]
    """When status last changed."""

    observed_generation: Annotated[int, Field(ge=0)]
    """Generation of the spec it is about."""


class InferenceServiceStatus(ApiModel):
    """What the service is."""

    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """Generation of the spec the operator has acted on."""

    replicas: Annotated[int, Field(ge=0)] | None = None
    """Pods that exist."""

    ready_replicas: Annotated[int, Field(ge=0)] | None = None
    """Pods made from the current spec that answer requests."""

    selector: Annotated[str, Field(max_length=256)] | None = None
    """Label selector of the pods, for the scale subresource."""

    endpoint: Annotated[str, Field(max_length=256)] | None = None
    """Where the service answers inside the cluster."""

    policy_generation: Annotated[int, Field(ge=0)] | None = None
    """Generation of the spec whose policy every running pod has acknowledged."""

    conditions: Annotated[
        tuple[Condition, ...], Field(max_length=16, json_schema_extra=list_map("type"))
    ] = ()
    """Ready, Progressing, ModelLoaded, PolicyApplied, MetricsAvailable, ScalingLimited,
    RouterReady, ActivatorReady and Stalled."""
