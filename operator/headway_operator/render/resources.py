"""What an engine's container asks for. Pure."""

from __future__ import annotations

from headway_operator.api.engine import Engine
from headway_operator.render.quantity import in_units

_GPU_RESOURCE = "/gpu"


def gpus_of(engine: Engine) -> int:
    """GPUs of one pod."""
    limits = (engine.resources.limits if engine.resources else None) or {}
    return sum(in_units(limits[name]) for name in limits if name.endswith(_GPU_RESOURCE))


def resource_of(engine: Engine, name: str) -> str | None:
    """How much of a resource the container may count on: its limit, else what is reserved."""
    resources = engine.resources
    if resources is None:
        return None
    return (resources.limits or {}).get(name) or (resources.requests or {}).get(name)
