"""What each tenant asked for and got: totals of few tenants, and of all others together.

Names come from outside, and each is a series for as long as a metrics system remembers. So the
tenants with the most service of late have a place of their own; one that loses its place to another
begins again at 0 when it gets one back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

PLACES = 16
"""Tenants with totals of their own."""

OTHERS = "_other"
"""All who have no place, or cannot be told apart. No tenant can be called so."""

HALF_LIFE_S = 300.0
"""Half of what was so long ago counts for a place."""

AHEAD = 2.0
"""Who takes another one's place has had so many times as much of late: places do not change for
nothing."""

MOST_CANDIDATES = 256
"""Tenants whose service is remembered."""


class TenantTotals(NamedTuple):
    """Of one tenant, since it got its place.

    Attributes:
        requests: requests that ended; those their clients gave up left out.
        attained: those of them that met every objective of their class.
        prompt_tokens: tokens of prompts that were computed; not those a cache saved, and those
            again that were computed again.
        generated_tokens: tokens of answers.
    """

    requests: int = 0
    attained: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0

    def plus(self, more: TenantTotals) -> TenantTotals:
        """Both together."""
        return TenantTotals(*map(sum, zip(self, more, strict=True)))


_NOTHING = TenantTotals()


class TenantTable:
    """Totals by tenant, of a bounded number of them."""

    def __init__(self) -> None:
        self._totals = {OTHERS: _NOTHING}
        self._service: dict[str, float] = {}
        self._aged_s: float | None = None

    @property
    def totals(self) -> Iterable[tuple[str, TenantTotals]]:
        """All totals, by tenant; those of :data:`OTHERS` come first."""
        return self._totals.items()

    def count(self, tenant: str, more: TenantTotals, now_s: float) -> None:
        """Something of a tenant has ended.

        Args:
            tenant: whose it is; empty for all who cannot be told apart.
            more: what it was.
            now_s: now, in seconds of any clock.
        """
        self._age(now_s)
        name = self._place(tenant, more.prompt_tokens + more.generated_tokens) if tenant else OTHERS
        self._totals[name] = self._totals[name].plus(more)

    def _place(self, tenant: str, tokens: int) -> str:
        """The tenant, if it has a place or gets one; else all others."""
        service = self._service
        service[tenant] = service.get(tenant, 0.0) + tokens
        if tenant in self._totals:
            return tenant
        if len(service) > MOST_CANDIDATES:
            self._forget_least(tenant)
        if len(self._totals) > PLACES:
            least = min(self._named(), key=lambda each: service.get(each, 0.0))
            if service[tenant] <= AHEAD * service.get(least, 0.0):
                return OTHERS
            del self._totals[least]
        self._totals[tenant] = _NOTHING
        return tenant

    def _forget_least(self, newest: str) -> None:
        """Make room for one that came; it is not the one that goes, or nobody new ever stayed."""
        without_place = [
            each for each in self._service if each not in self._totals and each != newest
        ]
        del self._service[min(without_place, key=lambda each: self._service[each])]

    def _named(self) -> list[str]:
        return [each for each in self._totals if each != OTHERS]

    def _age(self, now_s: float) -> None:
        if self._aged_s is None:
            self._aged_s = now_s
        periods = int((now_s - self._aged_s) / HALF_LIFE_S)
        if periods <= 0:
            return
        self._aged_s += periods * HALF_LIFE_S
        kept = 0.5 ** min(periods, 64)
        aged = {name: tokens * kept for name, tokens in self._service.items()}
        self._service = {name: tokens for name, tokens in aged.items() if tokens >= 1}
