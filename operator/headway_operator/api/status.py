"""``status``: what the operator reports. Nothing in it changes while nothing happens."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from headway_operator.api.base import ApiModel, list_map
from headway_operator.api.degradation import Step


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
    DEGRADED = "Degraded"
    """Something is given up while GPUs or memory are short; the reason is the step of the ladder
    that the service stands on."""
    STALLED = "Stalled"
    """Something is wrong that will not heal by itself."""


MOST_TRIES = 1000


class Condition(ApiModel):
    """One aspect of the service's state."""

    type: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Z][A-Za-z]*$")]
    """Ready, Progressing, ModelLoaded, PolicyApplied, MetricsAvailable, ScalingLimited,
    RouterReady, ActivatorReady, Degraded or Stalled."""

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


class TakenStep(ApiModel):
    """A step of spec.degradation that is in force, with what it takes to go on from there."""

    step: Step
    """Which one."""

    reason: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Z][A-Za-z]*$")]
    """What is short, as one word for programs."""

    since: Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"})]
    """When it was taken, or was last moved."""

    tries: Annotated[int, Field(ge=1, le=MOST_TRIES)] = 1
    """How often it was taken for the same spec, without having been left between; further ones are
    not counted."""

    retrying: bool = False
    """Whether it is being found out if what is declared can be had again: the step has no effect
    meanwhile."""

    declared: Annotated[str, Field(max_length=64)] | None = None
    """Hash of what is declared and could not be had: another one is tried anew."""

    memory_percent: Annotated[int, Field(ge=1, le=100)] | None = None
    """SmallerMemory: share of the declared memory that engines take."""

    least_memory_percent: Annotated[int, Field(ge=1, le=100)] | None = None
    """SmallerMemory: with a smaller share the model had too little room for its KV cache."""

    in_place: bool = False
    """Pods are being replaced without a spare one, because none of them served."""

    replicas: Annotated[int, Field(ge=1, le=1000)] | None = None
    """FewerReplicas: most pods."""

    wanted_replicas: Annotated[int, Field(ge=1, le=1000)] | None = None
    """FewerReplicas: pods that were decided on last, and are to run once they can be had."""

    max_batch_size: Annotated[int, Field(ge=1, le=8192)] | None = None
    """LowerLimits: most requests running at once."""

    token_budget: Annotated[int, Field(ge=1, le=1_048_576)] | None = None
    """LowerLimits: most tokens in one engine step."""


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
    RouterReady, ActivatorReady, Degraded and Stalled."""

    degradation: Annotated[
        tuple[TakenStep, ...], Field(max_length=5, json_schema_extra=list_map("step"))
    ] = ()
    """The steps of the ladder that are in force."""
