"""What tenants were served: virtual token counters, and who has more than a share of late.

A counter grows with every token its tenant is served, over its weight, and whoever has the least
goes next. A tenant that comes back is lifted to the least of those that wait: what it left unused
is gone, and it cannot save it up. After Sheng et al., "Fairness in Serving Large Language Models"
(OSDI 2024), with prompt tokens counted when they are computed rather than at admission, since
prompts are computed in chunks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, inf, log

from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.programs.priority import weighted_tokens

MOST_TENANTS = 128
"""Further ones share as one: names come from outside, and each costs time in every step."""

EVERYBODY_ELSE = ""
"""Who cannot be told apart."""

USE_TIME_S = 10.0
"""How long use is remembered."""

HEAVY = 1.25
"""Who has had so many times as much as others on average, by weight, has more than a share."""

MOST_BEHIND_TOKENS = 200_000.0
"""So many weighted tokens a tenant may catch up on: some seconds of a large engine."""

_IDLE_USE = 1.0


@dataclass
class _Account:
    """Of one tenant.

    Attributes:
        weight: its share, relative to others.
        counter: weighted tokens it was served.
        use: the same of late, forgotten exponentially.
    """

    weight: int = 1
    counter: float = 0.0
    use: float = 0.0


def charge(traffic_class: TrafficClass | None, prompt_tokens: int, output_tokens: int = 0) -> float:
    """What tokens of a class count, in weighted tokens."""
    weight = traffic_class.weight if traffic_class is not None else 1
    return weighted_tokens(prompt_tokens, output_tokens) / weight


class Shares:
    """Accounts of the tenants of an engine."""

    def __init__(self) -> None:
        self._declared: Mapping[str, int] = {}
        self._accounts: dict[str, _Account] = {}
        self._waiting: Counter[str] = Counter()
        self._last_counter = 0.0
        self._aged_s: float | None = None
        self.levels: Mapping[str, int] = {}
        """How far each tenant with more than a share is above it; see :meth:`age`."""

    def __len__(self) -> int:
        return len(self._accounts)

    def declare(self, weights: Mapping[str, int]) -> None:
        """Tenants with a weight of their own; all others have 1."""
        self._declared = dict(weights)
        for name, account in self._accounts.items():
            account.weight = self._declared.get(name, 1)

    def known_as(self, tenant: str) -> str:
        """The name under which a tenant is served: there are only so many accounts."""
        if tenant in self._accounts or tenant in self._declared:
            return tenant
        return tenant if len(self._accounts) < MOST_TENANTS else EVERYBODY_ELSE

    def counter(self, tenant: str) -> float:
        """Weighted tokens that a tenant was served."""
        return self._account(tenant).counter

    def weight(self, tenant: str) -> int:
        """Its share, relative to others."""
        return self._account(tenant).weight

    @property
    def waiting(self) -> Iterable[str]:
        """Tenants with requests that wait."""
        return self._waiting.keys()

    def waiting_of(self, tenant: str) -> int:
        """How many requests of a tenant wait."""
        return self._waiting[tenant]

    def waits(self, tenant: str) -> None:
        """A request of a tenant waits."""
        if not self._waiting[tenant]:
            self._lift(tenant)
        self._waiting[tenant] += 1

    def waits_no_more(self, tenant: str) -> None:
        """A request of a tenant that waited runs, or has ended."""
        self._waiting[tenant] -= 1
        if self._waiting[tenant] <= 0:
            del self._waiting[tenant]
            self._last_counter = self._account(tenant).counter

    def begin_anew(self) -> None:
        """Who waits is to be told anew, and nobody owes anybody anything.

        What was served by another order was nobody's choice.
        """
        self._waiting.clear()
        self._accounts.clear()
        self._last_counter = 0.0
        self.levels = {}

    def charge(self, tenant: str, tokens: float) -> None:
        """A tenant was served so many tokens, weighted by what they are."""
        account = self._account(tenant)
        account.counter += tokens / account.weight
        account.use += tokens / account.weight

    def age(self, now_s: float) -> None:
        """Forget what was long ago, and see who has more than a share."""
        if self._aged_s is not None:
            kept = exp(-max(0.0, now_s - self._aged_s) / USE_TIME_S)
            for account in self._accounts.values():
                account.use *= kept
        self._aged_s = now_s
        self._forgive()
        if len(self._accounts) >= MOST_TENANTS:
            self._forget_idle()
        self.levels = self._levels()

    def _forgive(self) -> None:
        """Nobody who waits is too far behind: deadlines ask for no counters while they pile up."""
        waiting = [self._account(each) for each in self._waiting]
        least = max([each.counter for each in waiting], default=0.0) - MOST_BEHIND_TOKENS
        for each in waiting:
            each.counter = max(each.counter, least)

    def _levels(self) -> dict[str, int]:
        active = [
            (name, each.use, each.weight)
            for name, each in self._accounts.items()
            if each.use > _IDLE_USE or name in self._waiting
        ]
        used = sum([use * weight for _, use, weight in active])
        if len(active) < 2 or used <= 0:  # noqa: PLR2004 - a share is a share of others
            return {}
        mean = used / sum([weight for _, _, weight in active])
        return {
            name: 1 + int(log(use / mean / HEAVY, HEAVY))
            for name, use, _ in active
            if use > HEAVY * mean
        }

    def _lift(self, tenant: str) -> None:
        account = self._account(tenant)
        least = min([self._account(each).counter for each in self._waiting], default=inf)
        account.counter = max(account.counter, self._last_counter if least == inf else least)

    def _account(self, tenant: str) -> _Account:
        account = self._accounts.get(tenant)
        if account is None:
            account = self._accounts[tenant] = _Account(self._declared.get(tenant, 1))
        return account

    def _forget_idle(self) -> None:
        idle = [
            name
            for name, each in self._accounts.items()
            if each.use <= _IDLE_USE and name not in self._waiting
        ]
        for name in idle:
            del self._accounts[name]
