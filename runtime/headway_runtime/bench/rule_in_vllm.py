"""An order of admission in force in a vLLM scheduler. Imports nothing of vLLM's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from typing import Any

from headway_runtime.bench.rivals.admission_rule import AdmissionRule, Newcomer
from headway_runtime.scheduling.origin import Origin


class RuleInVllm:
    """Tells a rule what a scheduler does, and puts its waiting queue in the rule's order.

    Args:
        rule: the rule.
        origin_of: tells where a vLLM request comes from.
    """

    def __init__(self, rule: AdmissionRule, origin_of: Callable[[Any], Origin]) -> None:
        self._rule = rule
        self._origin_of = origin_of

    def arrived(self, request: Any) -> None:
        """A request was added."""
        self._rule.arrived(
            Newcomer(
                request.request_id,
                self._origin_of(request),
                request.num_prompt_tokens,
                request.arrival_time,
            )
        )

    def arrange(self, waiting: Any, requests: Mapping[str, Any], now_s: float) -> None:
        """Put in front what goes next, behind what was preempted.

        Args:
            waiting: vLLM's queue, in order of arrival but for preempted requests in its front.
            requests: all requests of the scheduler by id.
            now_s: seconds since the epoch.
        """
        preempted = list(takewhile(lambda each: not self._rule.waits(each.request_id), waiting))
        first = [requests[name] for name in self._rule.first(now_s) if name in requests]
        for each in reversed([*preempted, *first]):
            # One that is not ready stands in another queue of vLLM's.
            if each in waiting:
                waiting.remove_request(each)
                waiting.prepend_request(each)

    def stepped(self, tokens: Mapping[str, int], now_s: float) -> None:
        """A step was decided with so many tokens of each request."""
        self._rule.stepped(tokens.items(), now_s)

    def ended(self, request_ids: Iterable[str]) -> None:
        """These requests have ended."""
        for each in request_ids:
            self._rule.ended(each)
