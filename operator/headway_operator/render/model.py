"""Where the engine finds its model."""

from __future__ import annotations

from dataclasses import dataclass

from headway_operator.api.model import ModelSource
from headway_operator.render.names import MODELS_DIR


@dataclass(frozen=True)
class ModelLocation:
    """A model as the engine is told about it.

    Attributes:
        argument: value of ``--model``: a path in the container or a name on the Hub.
        claim: PersistentVolumeClaim to mount, or None.
        mount_path: where it is mounted, or None.
    """

    argument: str
    claim: str | None = None
    mount_path: str | None = None


def locate(model: ModelSource) -> ModelLocation:
    """Resolve ``hf://organisation/name`` and ``pvc://claim/path/in/claim``."""
    scheme, _, rest = model.uri.partition("://")
    if scheme == "hf":
        return ModelLocation(argument=rest)
    claim, _, path = rest.partition("/")
    mount_path = f"{MODELS_DIR}/{claim}"
    argument = f"{mount_path}/{path}".rstrip("/")
    return ModelLocation(argument=argument, claim=claim, mount_path=mount_path)
