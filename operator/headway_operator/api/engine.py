"""``spec.engine``: the user's vLLM container and the pod around it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from headway_operator.api.base import ATOMIC, ApiModel, Rule, list_map, rules
from headway_operator.api.flags import RESERVED_FLAGS, reserved_flag_rule
from headway_operator.api.plain import (
    EnvVar,
    LocalReference,
    Resources,
    Toleration,
    Volume,
    VolumeMount,
)
from headway_operator.api.scalars import Argument, ImageReference, LabelValue, ObjectName, UserId

_OWN_METADATA = "[k.startsWith('headway.dev/'), k.startsWith('app.kubernetes.io/')].exists(t, t)"

ENGINE_RULES = (
    *(reserved_flag_rule(flags) for flags in RESERVED_FLAGS),
    Rule(
        "!has(self.resources) || !has(self.resources.limits) "
        "|| !('nvidia.com/gpu' in self.resources.limits) "
        "|| string(self.resources.limits['nvidia.com/gpu']) == string(self.tensorParallelSize)",
        "engine.tensorParallelSize must equal engine.resources.limits['nvidia.com/gpu']",
    ),
    Rule(
        "self.maxNumBatchedTokens >= self.maxNumSeqs",
        "engine.maxNumBatchedTokens must be at least engine.maxNumSeqs: "
        "each running request needs one token a step",
    ),
    Rule(
        "!has(self.volumeMounts) || self.volumeMounts.all(m, "
        "has(self.volumes) && self.volumes.exists(v, v.name == m.name))",
        "every engine.volumeMounts[].name must be the name of one of engine.volumes",
    ),
    Rule(
        f"!has(self.podLabels) || !self.podLabels.exists(k, {_OWN_METADATA})",
        "engine.podLabels must not use headway.dev/ or app.kubernetes.io/: Headway selects by them",
    ),
    Rule(
        f"!has(self.podAnnotations) || !self.podAnnotations.exists(k, {_OWN_METADATA})",
        "engine.podAnnotations must not use headway.dev/ or app.kubernetes.io/",
    ),
    Rule(
        "self.podSecurity != 'PlatformAssigned' || (!has(self.runAsUser) && !has(self.fsGroup))",
        "engine.runAsUser and engine.fsGroup are chosen by the platform when engine.podSecurity "
        "is PlatformAssigned: remove them",
    ),
)

Affinity = Annotated[
    dict[str, Any],
    WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
]

Annotation = Annotated[str, Field(max_length=4096)]


class Engine(ApiModel):
    """The user's vLLM container and the pod around it. A change replaces the pods."""

    model_config = ConfigDict(json_schema_extra=rules(*ENGINE_RULES))

    image: ImageReference
    """Image with vLLM 0.26 to 0.33, such as `vllm/vllm-openai:v0.26.0`."""

    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """When the image is pulled; as Kubernetes decides when absent."""

    args: Annotated[tuple[Argument, ...], Field(max_length=128, json_schema_extra=ATOMIC)] = ()
    """Further arguments of vLLM's OpenAI server, after those that Headway sets."""

    env: Annotated[
        tuple[EnvVar, ...], Field(max_length=128, json_schema_extra=list_map("name"))
    ] = ()
    """Environment variables. A `PYTHONPATH` is kept, behind Headway's own entry."""

    resources: Resources | None = None
    """Compute resources of the engine container."""

    volumes: Annotated[
        tuple[Volume, ...], Field(max_length=16, json_schema_extra=list_map("name"))
    ] = ()
    """Further volumes of the pods."""

    volume_mounts: Annotated[
        tuple[VolumeMount, ...], Field(max_length=32, json_schema_extra=list_map("mountPath"))
    ] = ()
    """Where they appear in the engine container."""

    tolerations: Annotated[
        tuple[Toleration, ...], Field(max_length=32, json_schema_extra=ATOMIC)
    ] = ()
    """Taints the pods may run in spite of."""

    node_selector: Annotated[dict[str, LabelValue], Field(max_length=32)] | None = None
    """Labels a node must have."""

    affinity: Affinity | None = None
    """Affinity of the pods, as in a pod's spec."""

    runtime_class_name: ObjectName | None = None
    """RuntimeClass of the pods."""

    priority_class_name: ObjectName | None = None
    """PriorityClass of the pods."""

    image_pull_secrets: Annotated[
        tuple[LocalReference, ...], Field(max_length=16, json_schema_extra=list_map("name"))
    ] = ()
    """Secrets with credentials for image registries."""

    service_account_name: ObjectName | None = None
    """ServiceAccount of the pods. Its token is not mounted."""

    pod_labels: Annotated[dict[str, LabelValue], Field(max_length=32)] | None = None
    """Further labels of the pods."""

    pod_annotations: Annotated[dict[str, Annotation], Field(max_length=32)] | None = None
    """Annotations of the pods."""

    pod_security: Literal["Restricted", "PlatformAssigned"] = "Restricted"
    """`Restricted` sets user and groups to satisfy the restricted pod security profile;
    `PlatformAssigned` leaves them to the platform (OpenShift)."""

    run_as_user: UserId | None = None
    """User and group of engine and sidecar; 65532 when absent."""

    fs_group: UserId | None = None
    """Group that owns the pods' volumes; 65532 when absent."""

    startup_timeout_seconds: Annotated[int, Field(ge=10, le=86_400)] = 1800
    """How long the engine may take to load the model, in seconds. Also the time after which a
    rollout without progress is reported as stalled."""

    drain_seconds: Annotated[int, Field(ge=5, le=3600)] = 30
    """How long a pod that is being stopped may finish its requests, in seconds."""

    shutdown_timeout_seconds: Annotated[int, Field(ge=0, le=3600)] = 30
    """How long vLLM may take to stop after that, in seconds (`--shutdown-timeout`)."""

    tensor_parallel_size: Annotated[int, Field(ge=1, le=16)] = 1
    """GPUs one engine runs on (`--tensor-parallel-size`)."""

    max_num_seqs: Annotated[int, Field(ge=1, le=8192)] = 1024
    """Most requests running at once, fixed at start (`--max-num-seqs`); the live value stays
    at or below it."""

    max_num_batched_tokens: Annotated[int, Field(ge=1, le=1_048_576)] = 8192
    """Most tokens in one engine step, fixed at start (`--max-num-batched-tokens`); the live
    value stays at or below it."""
