"""Virtual token counters (VTC).

Y. Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024 (arXiv 2401.00588),
algorithm 2, and ``vtc_req_queue.py`` in github.com/Ying1123/VTC-artifact. As there:

- Each tenant has a counter of what it was served: 1 for each prompt token, charged when the request
  is admitted, and 2 for each output token, charged when it is made; over the tenant's weight.
- Next comes the tenant with the least counter of those of whom requests wait, its earliest request.
- A tenant that had nothing waiting is lifted to the least counter of those that have; if nobody
  waits, to that of the one whose request left the queue last.

Differences: prompts are computed in chunks, which the paper does not know; what a request computes
again after it lost its KV blocks is not charged; what the prefix cache saves is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice

from headway_runtime.bench.rivals.admission_rule import LOOKAHEAD, Newcomer

PROMPT_TOKEN = 1.0
OUTPUT_TOKEN = 2.0
"""What tokens cost, as in the paper."""


class VirtualTokenCounters:
    """Admits the earliest request of the tenant that was served least.

    Implements :class:`headway_runtime.bench.rivals.admission_rule.AdmissionRule`.

    Args:
        weights: of tenants by name; whoever is not named has weight 1.
    """

    def __init__(self, weights: Mapping[str, int]) -> None:
        self._weights = weights
        self._counters: defaultdict[str, float] = defaultdict(float)
        self._waiting: dict[str, dict[str, Newcomer]] = {}
        self._tenants: dict[str, str] = {}
        self._prompts_left: dict[str, int] = {}
        self._last_to_leave: str | None = None

    def arrived(self, newcomer: Newcomer) -> None:
        """A request waits from now on."""
        tenant = newcomer.origin.tenant
        if tenant not in self._waiting:
            self._lift(tenant)
        self._waiting.setdefault(tenant, {})[newcomer.request_id] = newcomer
        self._tenants[newcomer.request_id] = tenant

    def stepped(self, tokens: Iterable[tuple[str, int]], now_s: float) -> None:  # noqa: ARG002 - tokens alone count
        """A step was decided."""
        for request_id, count in tokens:
            tenant = self._tenants.get(request_id)
            if tenant is None:
                continue
            newcomer = self._leave(request_id)
            if newcomer is not None:
                self._charge(tenant, PROMPT_TOKEN * newcomer.prompt_tokens)
                self._prompts_left[request_id] = newcomer.prompt_tokens
            left = self._prompts_left[request_id] = self._prompts_left[request_id] - count
            # A step computes one token of a request that decodes; more after a preemption.
            if count == 1 and left < 0:
                self._charge(tenant, OUTPUT_TOKEN)

    def ended(self, request_id: str) -> None:
        """A request has ended."""
        self._leave(request_id)
        self._tenants.pop(request_id, None)
        self._prompts_left.pop(request_id, None)

    def waits(self, request_id: str) -> bool:
        """Whether this request waits for its first admission."""
        tenant = self._tenants.get(request_id)
        return tenant is not None and request_id in self._waiting.get(tenant, {})

    def first(self, now_s: float) -> list[str]:  # noqa: ARG002 - tokens alone count
        """Ids of the requests to admit next."""
        counters = {tenant: self._counters[tenant] for tenant in self._waiting}
        queues = {
            tenant: iter(islice(waiting.values(), LOOKAHEAD))
            for tenant, waiting in self._waiting.items()
        }
        found: list[str] = []
        while queues and len(found) < LOOKAHEAD:
            tenant = min(queues, key=lambda name: (counters[name], name))
            newcomer = next(queues[tenant], None)
            if newcomer is None:
                del queues[tenant]
                continue
            found.append(newcomer.request_id)
            counters[tenant] += self._price(tenant, PROMPT_TOKEN * newcomer.prompt_tokens)
        return found

    def _lift(self, tenant: str) -> None:
        if self._waiting:
            least = min(self._counters[each] for each in self._waiting)
        elif self._last_to_leave is not None:
            least = self._counters[self._last_to_leave]
        else:
            return
        self._counters[tenant] = max(self._counters[tenant], least)

    def _leave(self, request_id: str) -> Newcomer | None:
        """A request leaves the queue; None if it was not in it."""
        tenant = self._tenants.get(request_id, "")
        waiting = self._waiting.get(tenant, {})
        newcomer = waiting.pop(request_id, None)
        if newcomer is not None:
            self._last_to_leave = tenant
            if not waiting:
                del self._waiting[tenant]
        return newcomer

    def _charge(self, tenant: str, tokens: float) -> None:
        self._counters[tenant] += self._price(tenant, tokens)

    def _price(self, tenant: str, tokens: float) -> float:
        return tokens / self._weights.get(tenant, 1)
