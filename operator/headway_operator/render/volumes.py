"""Volumes of the pods and where the engine sees them."""

from __future__ import annotations

from typing import Any

from headway_operator.api.labels import child_name
from headway_operator.api.spec import InferenceServiceSpec
from headway_operator.render.hashing import present
from headway_operator.render.model import locate
from headway_operator.render.names import (
    CACHE_DIR,
    HOME_DIR,
    LIBRARY_DIR,
    RUN_DIR,
)
from headway_operator.render.quantity import half_in_mebibytes

LIBRARY = "headway-lib"
RUN = "headway-run"
POLICY = "headway-policy"
_MODEL = "headway-model"
_CACHE = "headway-cache"
_SHM = "shm"
_HOME = "home"
_TMP = "tmp"

_RUN_SIZE = "16Mi"


def pod_volumes(service: str, spec: InferenceServiceSpec) -> list[dict[str, Any]]:
    """All volumes of a pod: Headway's, the model's, the user's."""
    shm = present({"medium": "Memory", "sizeLimit": _shm_size(spec)})
    volumes: list[dict[str, Any]] = [
        {"name": LIBRARY, "emptyDir": {}},
        {"name": RUN, "emptyDir": {"medium": "Memory", "sizeLimit": _RUN_SIZE}},
        {"name": POLICY, "configMap": {"name": child_name("ConfigMap", service)}},
        {"name": _SHM, "emptyDir": shm},
        {"name": _HOME, "emptyDir": {}},
        {"name": _TMP, "emptyDir": {}},
    ]
    claims = {_MODEL: locate(spec.model).claim, _CACHE: spec.model.cache_claim}
    volumes += [
        {"name": name, "persistentVolumeClaim": {"claimName": claim}}
        for name, claim in claims.items()
        if claim is not None
    ]
    return volumes + [volume.to_kubernetes() for volume in spec.engine.volumes]


def engine_mounts(spec: InferenceServiceSpec) -> list[dict[str, Any]]:
    """Where the engine container sees them."""
    mounts = [
        mount(LIBRARY, LIBRARY_DIR, read_only=True),
        mount(RUN, RUN_DIR),
        mount(_SHM, "/dev/shm"),  # noqa: S108 - the place is fixed by POSIX shared memory
        mount(_HOME, HOME_DIR),
        mount(_TMP, "/tmp"),  # noqa: S108 - the image expects to write there
    ]
    location = locate(spec.model)
    if location.mount_path is not None:
        mounts.append(mount(_MODEL, location.mount_path, read_only=True))
    if spec.model.cache_claim is not None:
        mounts.append(mount(_CACHE, CACHE_DIR))
    return mounts + [each.to_kubernetes() for each in spec.engine.volume_mounts]


def mount(name: str, path: str, *, read_only: bool = False) -> dict[str, Any]:
    """One volume mount."""
    return {"name": name, "mountPath": path, **({"readOnly": True} if read_only else {})}


def _shm_size(spec: InferenceServiceSpec) -> str | None:
    """Half of the engine's memory limit, as Linux sizes a tmpfs, since the limit pays for it."""
    limits = (spec.engine.resources.limits if spec.engine.resources else None) or {}
    return half_in_mebibytes(limits["memory"]) if "memory" in limits else None
