"""The standings of an engine's requests, and the programs that they are parts of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from headway_runtime.policy import Policy
from headway_runtime.scheduling.origin import UNKNOWN, Origin
from headway_runtime.scheduling.programs.priority import weighted_tokens
from headway_runtime.scheduling.programs.programs import Programs
from headway_runtime.scheduling.standing import NOBODYS, Standing, standing_of

_REMEMBERED = 65_536
"""Most requests that are remembered: some end without a word."""


class Origins:
    """Standings by request id, and the programs that requests are parts of.

    Until it is told how, it tells nobody apart.

    Args:
        known_as: the name under which a tenant is served.

    Attributes:
        programs: what is known of them.
    """

    def __init__(self, known_as: Callable[[str], str] = str) -> None:
        self.programs = Programs()
        self._known_as = known_as
        self._origin_of: Callable[[Any], Origin] | None = None
        self._standings: dict[str, Standing] = {}
        self._calls: dict[str, Any] = {}

    def tells_by(self, origin_of: Callable[[Any], Origin]) -> None:
        """Tell by this function where vLLM's requests come from."""
        self._origin_of = origin_of

    def adopt(self, policy: Policy) -> None:
        """Follow another policy: requests keep what they got when they came."""
        self.programs.adopt(policy.priority)

    def arrived(self, request: Any) -> None:
        """A request has come."""
        origin = UNKNOWN if self._origin_of is None else self._origin_of(request)
        if origin == UNKNOWN:
            return
        origin = origin._replace(tenant=self._known_as(origin.tenant))
        if len(self._standings) >= _REMEMBERED:
            self.ended(list(self._calls), request.arrival_time)
            self._standings.clear()
        name = request.request_id
        self._standings[name] = standing_of(
            self.programs, name, origin, request.arrival_time, request.num_prompt_tokens
        )
        if origin.call is not None:
            self._calls[name] = request

    def of(self, request_id: str) -> Standing:
        """What is known of a request."""
        return self._standings.get(request_id, NOBODYS)

    def admitted(self, request_id: str, now_s: float) -> None:
        """A request runs; the time is in seconds since the epoch."""
        if request_id in self._calls:
            self.programs.served(request_id, 0, now_s)

    def computed(self, request_id: str, prompt_tokens: int) -> None:
        """Prompt tokens of a request were computed; what a cache saved is no service."""
        if request_id in self._calls:
            self.programs.served(request_id, weighted_tokens(prompt_tokens, 0))

    def ended(self, request_ids: Iterable[str], now_s: float) -> None:
        """These requests are gone."""
        for each in request_ids:
            self._standings.pop(each, None)
            call = self._calls.pop(each, None)
            if call is not None:
                self.programs.served(each, weighted_tokens(0, call.num_output_tokens), now_s)
                self.programs.ended((each,), now_s)
