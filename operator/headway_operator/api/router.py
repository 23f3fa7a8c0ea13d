"""``spec.router``: vLLM's router between the Service and the engines."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from headway_operator.api.base import ATOMIC, ApiModel
from headway_operator.api.plain import Resources, Toleration
from headway_operator.api.scalars import ImageReference, LabelValue


class Router(ApiModel):
    """vLLM's router between the Service and the engines.

    While one of its pods is ready, the Service points to it; otherwise to the engines.
    """

    enabled: bool = False
    """Whether there is one. Turning it on or off restarts no engine and cuts no stream."""

    policy: Literal["RoundRobin", "CacheAware", "ConsistentHash"] = "RoundRobin"
    """How an engine is chosen. `RoundRobin`: each in turn. `CacheAware`: the one that had most of
    the prompt before, unless it has much more to do than others. `ConsistentHash`: always the same
    one for the same `X-Session-ID`."""

    replicas: Annotated[int, Field(ge=1, le=100)] = 2
    """Pods of the router."""

    retries: Annotated[int, Field(ge=0, le=20)] = 6
    """How often a request that failed before anything was answered, or that an engine refused, is
    tried again. All six take half a second; with fewer, a request may still meet an engine that
    has just died, with more, clients wait longer for a refusal."""

    image: ImageReference | None = None
    """Image with Python and the package vllm-router; the operator's default when absent. A router
    that runs keeps its image until router, runtime or the pod's security in engine changes."""

    resources: Resources | None = None
    """Compute resources of the router's container; a small request and a memory limit of 1Gi when
    absent."""

    drain_seconds: Annotated[int, Field(ge=5, le=86_400)] = 300
    """How long a router pod that is being stopped may go on with its requests, in seconds."""

    node_selector: Annotated[dict[str, LabelValue], Field(max_length=32)] | None = None
    """Labels a node must have to run the router."""

    tolerations: Annotated[
        tuple[Toleration, ...], Field(max_length=32, json_schema_extra=ATOMIC)
    ] = ()
    """Taints the router's pods may run in spite of."""
