"""What each tenant is charged for the steps of an engine."""

from __future__ import annotations

from typing import Any

from headway_runtime.executors.vllm.origins import Origins
from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.tenants.tenancy import Served, Tenancy
from headway_runtime.scheduling.urgency import is_background

Payer = tuple[str, TrafficClass | None]
"""A tenant, and the class of what it is charged for."""


class Charges:
    """Charges prompts by their chunks, and decodes by how many a tenant has in the batch.

    A step is charged in the time of its tenants and classes, not of its requests.

    Args:
        tenancy: where it is charged.
        origins: is told what is computed for programs.
    """

    def __init__(self, tenancy: Tenancy[Any], origins: Origins) -> None:
        self._tenancy = tenancy
        self._origins = origins
        self._payers: dict[str, Payer] = {}
        self._decodes: dict[Payer, int] = {}

    def prompt(self, request_id: str, payer: Payer, tokens: int, *, is_late: bool) -> None:
        """Prompt tokens of a request were computed."""
        tenant, promised = payer
        served = Served(tokens, is_background=is_background(promised, is_late=is_late))
        self._tenancy.served(tenant, promised, served)
        self._origins.computed(request_id, tokens)

    def decodes(self, request_id: str, payer: Payer) -> None:
        """A request gets a token in each step from now on."""
        self.decodes_no_more(request_id)
        self._payers[request_id] = payer
        self._decodes[payer] = self._decodes.get(payer, 0) + 1

    def decodes_no_more(self, request_id: str) -> None:
        """A request does not decode any more, if it did."""
        payer = self._payers.pop(request_id, None)
        if payer is None:
            return
        self._decodes[payer] -= 1
        if not self._decodes[payer]:
            del self._decodes[payer]

    def stepped(self) -> None:
        """All that decodes was in a step."""
        for (tenant, traffic_class), count in self._decodes.items():
            self._tenancy.served(tenant, traffic_class, Served(output_tokens=count))
