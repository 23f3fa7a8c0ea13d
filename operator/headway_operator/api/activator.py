"""``spec.scaling.activator``: who answers while a service has no engine."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from headway_operator.api.base import ATOMIC, ApiModel
from headway_operator.api.plain import Toleration
from headway_operator.api.scalars import LabelValue


class Activator(ApiModel):
    """Who answers while a service has no engine.

    It holds requests until an engine is ready, and passes them on. Beyond its bounds it answers 503
    with `Retry-After`.
    """

    replicas: Annotated[int, Field(ge=1, le=10)] = 2
    """Pods of the activator. Bounds are those of each."""

    max_held_requests: Annotated[int, Field(ge=0, le=10_000)] = 100
    """Most requests that one pod holds at once. 0: none, all are answered 503 until an engine is
    ready; they start it nevertheless."""

    max_held_mebibytes: Annotated[int, Field(ge=1, le=4096)] = 64
    """Most MiB of the bodies of held requests together, in one pod; its memory limit follows from
    it."""

    hold_seconds: Annotated[int, Field(ge=1, le=3600)] = 600
    """How long a request is held at most. Clients and proxies in front have limits of their own."""

    node_selector: Annotated[dict[str, LabelValue], Field(max_length=32)] | None = None
    """Labels a node must have to run the activator."""

    tolerations: Annotated[
        tuple[Toleration, ...], Field(max_length=32, json_schema_extra=ATOMIC)
    ] = ()
    """Taints the activator's pods may run in spite of."""
