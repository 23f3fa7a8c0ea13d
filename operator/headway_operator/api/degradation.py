"""``spec.degradation``: what a service gives up, in which order, while something is short."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from headway_operator.api.base import ApiModel, Rule, rules
from headway_operator.api.model import ModelSource


class Step(StrEnum):
    """A rung of the ladder."""

    SHED_CLASSES = "ShedClasses"
    """Of a class with `whenUnmet: Shed`, at most one request waits in an engine. Live."""
    LOWER_LIMITS = "LowerLimits"
    """Half of what runs may run at once, in steps of half the tokens. Live."""
    SMALLER_MEMORY = "SmallerMemory"
    """Engines take 80, then 60, then 40 % of the memory that is declared. A restart each."""
    FEWER_REPLICAS = "FewerReplicas"
    """As many pods as can be had, and at least one."""
    FALLBACK_MODEL = "FallbackModel"
    """Another model under the same name. A restart."""


class LadderStep(ApiModel):
    """One rung of the ladder."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "self.step != 'FallbackModel' || has(self.model)",
                "degradation[].model is the model that the step FallbackModel falls back to: add "
                "model.uri, or remove the step",
            ),
            Rule(
                "self.step == 'FallbackModel' || !has(self.model)",
                "degradation[].model is for the step FallbackModel: remove it from this step",
            ),
        )
    )

    step: Step
    """`ShedClasses`: of a class with whenUnmet Shed at most one request waits in an engine.
    `LowerLimits`: half of what runs may run at once, in steps of half the tokens. `SmallerMemory`:
    engines start with 80, then 60, then 40 % of the memory that is declared. `FewerReplicas`: as
    many pods as can be had, at least one. `FallbackModel`: another model under the same name."""

    after_seconds: Annotated[int, Field(ge=0, le=86_400)] | None = None
    """How long the shortage has lasted before the step is taken, in seconds. When absent: 30 for
    ShedClasses and LowerLimits, 600 for FewerReplicas (nodes may be added meanwhile), 0 for those
    that follow an engine that was restarted twice for want of memory."""

    model: ModelSource | None = None
    """The model of the step FallbackModel; engine.args stay as they are, and so does the name that
    requests use."""
