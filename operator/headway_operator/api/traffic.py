"""``spec.classes`` and ``spec.tenants``: what is promised to whom, and who shares with whom."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from headway_operator.api.base import ApiModel, Rule, rules
from headway_operator.api.scalars import DnsLabel

Weight = Annotated[int, Field(ge=1, le=100)]

Sha256 = Annotated[str, StringConstraints(min_length=64, max_length=64, pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 in hexadecimal."""


class TrafficClass(ApiModel):
    """A class of requests and the objective they are ordered by. A change is applied live."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "self.whenUnmet != 'Shed' || has(self.ttftMilliseconds) "
                "|| has(self.deadlineSeconds)",
                "classes[].whenUnmet Shed refuses requests whose objective cannot be kept: add "
                "ttftMilliseconds or deadlineSeconds to the class, or use Queue",
            )
        )
    )

    name: DnsLabel
    """Name that requests give in `vllm_xargs.headway_class`."""

    ttft_milliseconds: Annotated[int, Field(ge=1, le=3_600_000)] | None = None
    """Time to first token to keep, in milliseconds."""

    tpot_milliseconds: Annotated[int, Field(ge=1, le=3_600_000)] | None = None
    """Mean time per output token after the first to keep, in milliseconds."""

    deadline_seconds: Annotated[int, Field(ge=1, le=604_800)] | None = None
    """Time to the last token to keep, in seconds."""

    weight: Weight = 1
    """How cheap the class is for its tenant: a token of a class of weight 4 counts a quarter
    against the tenant's share."""

    when_unmet: Literal["Queue", "Shed"] = "Queue"
    """What becomes of a request whose objective cannot be kept when it arrives: `Queue` lets it
    wait behind those whose objective can be kept, `Shed` answers 503 with `Retry-After` at once.
    What counts is ttftMilliseconds, without it deadlineSeconds."""

    max_queued: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Most requests of the class that wait in one engine; further ones are answered 503 with
    `Retry-After`. Unlimited when absent."""


class Tenant(ApiModel):
    """Somebody who shares the engines with others. A change is applied live."""

    name: DnsLabel
    """Name of the tenant, and its value of the header `X-Headway-Tenant` (see trustHeaders)."""

    weight: Weight = 1
    """Its share relative to the others': of two tenants with weights 3 and 1 that both have
    requests waiting, the first is served three quarters."""

    api_key_sha256: Annotated[Sha256 | None, Field(alias="apiKeySHA256")] = None
    """SHA-256 of the API key (the Bearer token) its requests come with, as 64 lower-case
    hexadecimal digits: `printf %s "$KEY" | sha256sum`. It tells tenants apart and lets nobody in:
    that is what vLLM's `--api-key` or a gateway is for."""
