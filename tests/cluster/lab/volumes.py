"""The engine's environment and the model as claims, so that restricted pods can mount them.

The restricted Pod Security level forbids hostPath volumes in pods, but not claims that are bound to
hostPath PersistentVolumes.
"""

from pathlib import Path
from typing import Any

from .errors import LabError
from .kubectl import apply, get, kubectl
from .paths import Paths

ENGINE_CLAIM = "engine-environment"
MODELS_CLAIM = "models"
_SIZE = "20Gi"  # must be given, has no effect
_MODES = ["ReadOnlyMany"]


def create_volumes(paths: Paths, namespace: str) -> None:
    """Apply volumes and claims in an existing namespace and wait until they are bound.

    The paths are symbolic links of fixed names, so a rebuilt environment needs no new volume (pods
    that run keep the one they have).
    """
    directories = {ENGINE_CLAIM: paths.engine, MODELS_CLAIM: paths.models}
    for claim, directory in directories.items():
        if not directory.exists():
            raise LabError(f"{directory} is missing: run `engine` first")
        _drop_stale_volume(paths, volume_name(namespace, claim))
    volumes = [persistent_volume(namespace, *item) for item in directories.items()]
    apply(paths, [*volumes, *(persistent_volume_claim(namespace, claim) for claim in directories)])
    claims = [f"persistentvolumeclaim/{claim}" for claim in directories]
    bound = ("--for=jsonpath={.status.phase}=Bound", "--timeout=60s")
    kubectl(paths, "wait", "--namespace", namespace, *bound, *claims)


def volume_name(namespace: str, claim: str) -> str:
    """PersistentVolumes have no namespace, so their name holds it."""
    return f"{namespace}-{claim}"


def persistent_volume(namespace: str, claim: str, directory: Path) -> dict[str, Any]:
    """A read-only volume that only `claim` of `namespace` can bind."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume_name(namespace, claim)},
        "spec": {
            "capacity": {"storage": _SIZE},
            "accessModes": _MODES,
            "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": namespace,
                "name": claim,
            },
            "hostPath": {"path": str(directory), "type": "Directory"},
        },
    }


def persistent_volume_claim(namespace: str, claim: str) -> dict[str, Any]:
    """The claim that binds `persistent_volume`."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim, "namespace": namespace},
        "spec": {
            "accessModes": _MODES,
            "storageClassName": "",
            "volumeName": volume_name(namespace, claim),
            "resources": {"requests": {"storage": _SIZE}},
        },
    }


def _drop_stale_volume(paths: Paths, name: str) -> None:
    """Delete a volume whose claim went away with its namespace: it would never be bound again."""
    volume = get(paths, "persistentvolume", name)
    if volume is not None and volume["status"].get("phase") in {"Released", "Failed"}:
        kubectl(paths, "delete", "persistentvolume", name, "--ignore-not-found")
