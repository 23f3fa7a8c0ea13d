"""``spec``: what a user declares about an inference service."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from headway_operator.api.base import ATOMIC, ApiModel, Rule, list_map, rules
from headway_operator.api.degradation import LadderStep
from headway_operator.api.engine import Engine
from headway_operator.api.model import Model
from headway_operator.api.router import Router
from headway_operator.api.scalars import DnsLabel, ImageReference
from headway_operator.api.scaling import IN_FULL, Scaling
from headway_operator.api.scheduling import Scheduling
from headway_operator.api.traffic import Tenant, TrafficClass


class Runtime(ApiModel):
    """Headway's own part of the pods."""

    image: ImageReference | None = None
    """Image of the sidecar and of the plug-in; the operator's default when absent. Running pods
    keep theirs until model, engine or runtime changes: upgrading the operator restarts nothing."""


class InferenceServiceSpec(ApiModel):
    """What the service should be."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "!has(self.defaultClass) || (has(self.classes) "
                "&& self.classes.exists(c, c.name == self.defaultClass))",
                "defaultClass must be the name of one of classes",
            ),
            Rule(
                "!has(self.scaling) || !has(oldSelf.scaling) || self.scaling.mode != 'Operator' "
                "|| oldSelf.scaling.mode != 'Operator' || self.replicas == oldSelf.replicas",
                "replicas is decided by the operator: set scaling.minReplicas and "
                "scaling.maxReplicas, or scaling.mode External",
            ),
            Rule(
                "!has(self.scheduling.maxBatchSize) "
                "|| self.scheduling.maxBatchSize <= self.engine.maxNumSeqs",
                "scheduling.maxBatchSize must be at most engine.maxNumSeqs, the ceiling "
                "the engines start with",
            ),
            Rule(
                "!has(self.scheduling.tokenBudget) "
                "|| self.scheduling.tokenBudget <= self.engine.maxNumBatchedTokens",
                "scheduling.tokenBudget must be at most engine.maxNumBatchedTokens, the ceiling "
                "the engines start with",
            ),
            Rule(
                "!has(self.tenants) || self.tenants.all(t, !has(t.apiKeySHA256) "
                "|| self.tenants.exists_one(o, has(o.apiKeySHA256) "
                "&& o.apiKeySHA256 == t.apiKeySHA256))",
                "tenants[].apiKeySHA256 must not be the same for two tenants: a key tells one "
                "tenant from the others, so remove one of them",
            ),
            Rule(
                "self.trustHeaders || !has(self.tenants) "
                "|| self.tenants.all(t, has(t.apiKeySHA256))",
                "tenants[].apiKeySHA256 is what requests of a tenant are known by: add it, or set "
                "trustHeaders if something in front of the Service sets X-Headway-Tenant",
            ),
            Rule(
                "!has(self.degradation) || self.degradation.all(s, "
                "self.degradation.exists_one(o, o.step == s.step))",
                "degradation[].step must not name a step twice: remove one of the two",
            ),
        )
    )

    replicas: Annotated[int, Field(ge=0, le=1000)] = 1
    """Pods to run, unless scaling.mode is Operator. HPA and KEDA set it through the scale
    subresource."""

    model: Model
    """The model to serve."""

    engine: Engine
    """The vLLM container and the pod around it."""

    runtime: Annotated[Runtime, Field(default_factory=Runtime)]
    """Headway's own part of the pods."""

    classes: Annotated[
        tuple[TrafficClass, ...], Field(max_length=32, json_schema_extra=list_map("name"))
    ] = ()
    """Classes of traffic."""

    default_class: DnsLabel | None = None
    """Class of a request that names none or an unknown one; without it such a request runs
    after those that have an objective."""

    tenants: Annotated[
        tuple[Tenant, ...], Field(max_length=64, json_schema_extra=list_map("name"))
    ] = ()
    """Those who share the engines. While several have requests waiting, each is served in
    proportion to its weight. Requests of nobody listed here share as one tenant of weight 1; but
    where vLLM itself checks API keys (`--api-key`), every further key is a tenant of its own.
    Applied live."""

    trust_headers: bool = False
    """Whether the headers `X-Headway-Tenant`, `X-Headway-Class` and `X-Headway-Program` of a
    request name its tenant, class and program. Set it only where a gateway in front of the
    Service sets or removes them: otherwise any client takes any tenant's share. Applied live."""

    scheduling: Annotated[
        Scheduling, Field(default_factory=Scheduling, json_schema_extra={"default": {}})
    ]
    """How the engines schedule."""

    scaling: Annotated[Scaling, Field(default_factory=Scaling, json_schema_extra=IN_FULL)]
    """How many pods there are, and who decides it."""

    router: Annotated[Router, Field(default_factory=Router, json_schema_extra={"default": {}})]
    """vLLM's router between the Service and the engines: it chooses an engine for each request, and
    another one where that engine dies or refuses before it has answered anything."""

    degradation: (
        Annotated[tuple[LadderStep, ...], Field(max_length=5, json_schema_extra=ATOMIC)] | None
    ) = None
    """What is given up, in this order, while GPUs or memory are short. When absent: ShedClasses,
    LowerLimits, SmallerMemory, FewerReplicas. An empty list gives up nothing. A step that would not
    help with what is short is passed over."""
