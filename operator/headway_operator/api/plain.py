"""The subset of plain Kubernetes types that a service's pods may use."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from headway_operator.api.base import ATOMIC, ApiModel, Rule, rules
from headway_operator.api.scalars import (
    DataKey,
    DnsLabel,
    EnvName,
    MountPath,
    ObjectName,
    QualifiedName,
    Quantity,
    RelativePath,
)


class KeyReference(ApiModel):
    """A key of a Secret or a ConfigMap in the same namespace."""

    name: ObjectName
    """Name of the object."""

    key: DataKey
    """Key in the object's data."""

    optional: bool | None = None
    """Whether the object or the key may be missing."""


class FieldReference(ApiModel):
    """A field of the pod."""

    field_path: Annotated[str, Field(min_length=1, max_length=256)]
    """Path of the field, such as `metadata.name` or `status.hostIP`."""


class EnvSource(ApiModel):
    """Where the value of an environment variable comes from."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "[has(self.secretKeyRef), has(self.configMapKeyRef), has(self.fieldRef)]"
                ".filter(set, set).size() == 1",
                "valueFrom needs exactly one of secretKeyRef, configMapKeyRef and fieldRef",
            )
        )
    )

    secret_key_ref: KeyReference | None = None
    """A key of a Secret."""

    config_map_key_ref: KeyReference | None = None
    """A key of a ConfigMap."""

    field_ref: FieldReference | None = None
    """A field of the pod."""


class EnvVar(ApiModel):
    """An environment variable of the engine container."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "!(has(self.value) && has(self.valueFrom))",
                "an environment variable has either value or valueFrom: remove one of them",
            ),
            Rule(
                "!self.name.startsWith('HEADWAY_')",
                "environment variables HEADWAY_* are set by Headway: remove them from engine.env",
            ),
        )
    )

    name: EnvName
    """Name of the variable."""

    value: Annotated[str, Field(max_length=8192)] | None = None
    """Its value; empty when neither this nor valueFrom is set."""

    value_from: EnvSource | None = None
    """Where its value comes from."""


class Resources(ApiModel):
    """Compute resources of the engine container."""

    limits: Annotated[dict[str, Quantity], Field(max_length=16)] | None = None
    """The most it may use. The memory limit also sizes `/dev/shm`, which counts against it."""

    requests: Annotated[dict[str, Quantity], Field(max_length=16)] | None = None
    """What the node reserves for it; defaults to the limits."""


class Toleration(ApiModel):
    """A taint the pods may run in spite of."""

    key: QualifiedName | None = None
    """Key of the taint; every taint when absent, with operator Exists."""

    operator: Literal["Exists", "Equal"] | None = None
    """How value is compared; Equal when absent."""

    value: Annotated[str, Field(max_length=63)] | None = None
    """Value of the taint."""

    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint; every effect when absent."""

    toleration_seconds: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    """How long a NoExecute taint is tolerated, in seconds; for ever when absent."""


class ClaimSource(ApiModel):
    """A PersistentVolumeClaim in the same namespace."""

    claim_name: ObjectName
    """Name of the claim."""

    read_only: bool | None = None
    """Whether the volume is mounted read-only everywhere."""


class KeyToPath(ApiModel):
    """A key of a Secret or a ConfigMap and the file it becomes."""

    key: DataKey
    """Key in the object's data."""

    path: RelativePath
    """Path of the file in the volume."""


class ConfigMapSource(ApiModel):
    """A ConfigMap whose keys become files."""

    name: ObjectName
    """Name of the ConfigMap."""

    items: Annotated[tuple[KeyToPath, ...], Field(max_length=64, json_schema_extra=ATOMIC)] = ()
    """The keys to project; all of them when empty."""

    optional: bool | None = None
    """Whether the ConfigMap may be missing."""


class SecretSource(ApiModel):
    """A Secret whose keys become files."""

    secret_name: ObjectName
    """Name of the Secret."""

    items: Annotated[tuple[KeyToPath, ...], Field(max_length=64, json_schema_extra=ATOMIC)] = ()
    """The keys to project; all of them when empty."""

    optional: bool | None = None
    """Whether the Secret may be missing."""


class EmptyDirSource(ApiModel):
    """A directory that lives as long as the pod."""

    medium: Literal["", "Memory"] | None = None
    """`Memory` for a tmpfs, which counts against memory limits."""

    size_limit: Quantity | None = None
    """The most it may hold."""


class CsiSource(ApiModel):
    """An ephemeral volume of a CSI driver."""

    driver: ObjectName
    """Name of the driver."""

    read_only: bool | None = None
    """Whether the volume is read-only."""

    fs_type: Annotated[str, Field(max_length=63)] | None = None
    """File system to mount."""

    volume_attributes: (
        Annotated[dict[str, Annotated[str, Field(max_length=1024)]], Field(max_length=32)] | None
    ) = None
    """Attributes passed to the driver."""


class Volume(ApiModel):
    """A volume of the pods; of the kinds that the restricted pod security profile allows."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "[has(self.persistentVolumeClaim), has(self.configMap), has(self.secret), "
                "has(self.emptyDir), has(self.csi)].filter(set, set).size() == 1",
                "a volume needs exactly one of persistentVolumeClaim, configMap, secret, "
                "emptyDir and csi",
            ),
            Rule(
                "!self.name.startsWith('headway-') && !(self.name in ['shm', 'home', 'tmp'])",
                "volume names shm, home, tmp and headway-* are used by Headway: choose another",
            ),
        )
    )

    name: DnsLabel
    """Name that volumeMounts refer to."""

    persistent_volume_claim: ClaimSource | None = None
    """A PersistentVolumeClaim."""

    config_map: ConfigMapSource | None = None
    """A ConfigMap."""

    secret: SecretSource | None = None
    """A Secret."""

    empty_dir: EmptyDirSource | None = None
    """A directory that lives as long as the pod."""

    csi: CsiSource | None = None
    """An ephemeral volume of a CSI driver."""


class VolumeMount(ApiModel):
    """Where a volume appears in the engine container."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "!['/opt/headway', '/run/headway', '/etc/headway', '/dev/shm', '/models']"
                ".exists(p, self.mountPath == p || self.mountPath.startsWith(p + '/')) "
                "&& !(self.mountPath in ['/tmp', '/home/headway', '/cache/huggingface'])",
                "this mountPath is used by Headway (/opt/headway, /run/headway, /etc/headway, "
                "/dev/shm, /models, /tmp, /home/headway, /cache/huggingface): choose another",
            )
        )
    )

    name: DnsLabel
    """Name of one of engine.volumes."""

    mount_path: MountPath
    """Where it is mounted."""

    sub_path: RelativePath | None = None
    """Path within the volume; its root when absent."""

    read_only: bool | None = None
    """Whether it is mounted read-only."""


class LocalReference(ApiModel):
    """A Secret in the same namespace."""

    name: ObjectName
    """Name of the Secret."""
