"""``spec``: what a user declares about an inference service."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from headway_operator.api.base import ApiModel, Rule, list_map, rules
from headway_operator.api.engine import Engine
from headway_operator.api.router import Router
from headway_operator.api.scalars import DataKey, DnsLabel, ImageReference, ObjectName
from headway_operator.api.scaling import IN_FULL, Scaling
from headway_operator.api.scheduling import Scheduling
from headway_operator.api.traffic import Tenant, TrafficClass

_HF = r"^hf://[A-Za-z0-9][-A-Za-z0-9._]*/[A-Za-z0-9][-A-Za-z0-9._]*$"
_PVC = r"^pvc://[a-z0-9]([-a-z0-9.]*[a-z0-9])?(/[-A-Za-z0-9._]+)*/?$"


Revision = Annotated[
    str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][-A-Za-z0-9._/]*$")
]


class TokenSecret(ApiModel):
    """A key of a Secret in the same namespace."""

    name: ObjectName
    """Name of the Secret."""

    key: DataKey
    """Key in the Secret's data."""


class Model(ApiModel):
    """The model to serve. A change replaces the pods."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                f"self.uri.matches('{_HF}') || self.uri.matches('{_PVC}')",
                "model.uri must be hf://organisation/name or pvc://claim/path/in/claim",
            ),
            Rule("!self.uri.contains('/..')", "model.uri must not contain '..'"),
            Rule(
                "self.uri.startsWith('hf://') || (!has(self.revision) && !has(self.tokenSecret) "
                "&& !has(self.cacheClaim))",
                "model.revision, model.tokenSecret and model.cacheClaim are for hf:// models: "
                "remove them or use an hf:// uri",
            ),
        )
    )

    uri: Annotated[str, Field(min_length=1, max_length=512)]
    """`hf://organisation/name` for the Hugging Face Hub, or `pvc://claim/path/in/claim`."""

    served_name: (
        Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[-A-Za-z0-9._/:]+$")] | None
    ) = None
    """Name that requests use for the model; the InferenceService's own name when absent."""

    revision: (
        Annotated[
            str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][-A-Za-z0-9._/]*$")
        ]
        | None
    ) = None
    """Branch, tag or commit of an hf:// model."""

    token_secret: TokenSecret | None = None
    """Hub token for an hf:// model that needs one."""

    cache_claim: ObjectName | None = None
    """PersistentVolumeClaim that keeps downloaded files of an hf:// model between pods."""


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
