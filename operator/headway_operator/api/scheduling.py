"""``spec.scheduling``: how the engines schedule."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from headway_operator.api.base import ApiModel, Rule, rules

Percent = Annotated[int, Field(ge=0, le=100)]


class Priority(ApiModel):
    """How requests without a deadline are ranked within their tenant. A change is applied live."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "self.basePercent + self.depthPercent + self.progressPercent == 100",
                "scheduling.priority: basePercent, depthPercent and progressPercent must add up to "
                "100; those left out count with their defaults (50, 30, 20), so set all three",
            )
        )
    )

    base_percent: Percent = 50
    """How much it counts that a program was served little so far."""

    depth_percent: Percent = 30
    """How much it counts that a request is near the end of its program; where nobody says what is
    to come, that many calls of the program came before it."""

    progress_percent: Percent = 20
    """How much it counts that all of a program waits for a request, and not for another branch."""

    learn: bool = False
    """Whether each engine tunes the three to the programs it sees, starting from these."""


_IN_FULL = {"default": Priority().model_dump(by_alias=True)}
"""The API server holds a default against its rules before it fills in fields."""


class Scheduling(ApiModel):
    """How the engines schedule. A change is applied live, without a restart."""

    mode: Literal["Act", "Shadow", "Off"] = "Act"
    """`Act` lets Headway schedule; `Shadow` plans and records while vLLM schedules; `Off`
    leaves vLLM alone."""

    max_batch_size: Annotated[int, Field(ge=1, le=8192)] | None = None
    """Most requests running at once; engine.maxNumSeqs when absent. The operator goes below it
    while that helps the classes' objectives, never above."""

    token_budget: Annotated[int, Field(ge=1, le=1_048_576)] | None = None
    """Most tokens in one engine step; engine.maxNumBatchedTokens when absent. The operator goes
    below it while that helps the classes' objectives, never above."""

    fairness_window: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Within how many scheduling decisions tenants with waiting requests get their shares. One
    that is ahead of another by more is no longer served first for its ttftMilliseconds. Smaller is
    fairer from moment to moment; larger keeps more objectives of a tenant that sends in bursts."""

    priority: Annotated[Priority, Field(default_factory=Priority, json_schema_extra=_IN_FULL)]
    """How requests without a deadline are ranked within their tenant."""
