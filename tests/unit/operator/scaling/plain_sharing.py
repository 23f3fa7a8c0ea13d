"""How GPUs are divided, word for word: every pod is looked for among all services.

The operator does the same faster; here it says what that must come to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headway_operator.memory.claims import GpuClaim
from headway_operator.observe.records import ServiceKey


@dataclass
class _Share:
    """What an equal gets beyond its least, in pods."""

    claim: GpuClaim
    missing: int
    fair: float
    pods: int

    @property
    def above(self) -> float:
        """Pods that it has beyond its fair share."""
        return self.pods - self.fair

    @property
    def order(self) -> tuple[float, ServiceKey]:
        """Who has least of its share comes first."""
        return self.above, self.claim.key


def divide(gpus: int, claims: Sequence[GpuClaim]) -> dict[ServiceKey, int]:
    """Pods of each service.

    Never less than each must have, even where that alone is more than there is; otherwise never
    more GPUs than there are. The same claims, with the result as what runs, give the same result.
    """
    granted = {claim.key: claim.least for claim in claims}
    left = gpus - sum(claim.least * claim.gpus for claim in claims)
    for priority in sorted({claim.priority for claim in claims}, reverse=True):
        equals = [claim for claim in claims if claim.priority == priority]
        for share in _shared(max(0, left), equals):
            granted[share.claim.key] += share.pods
            left -= share.pods * share.claim.gpus
    return granted


def _shared(left: int, equals: Iterable[GpuClaim]) -> list[_Share]:
    """What equals get of so many GPUs, beyond the least of each."""
    missing = {claim: claim.wanted - claim.least for claim in equals}
    asked = sum(pods * claim.gpus for claim, pods in missing.items())
    part = min(1.0, left / asked) if asked else 0.0
    shares = [
        _Share(claim, pods, part * pods, min(pods, max(0, claim.running - claim.least)))
        for claim, pods in missing.items()
    ]
    while (free := _free(left, shares)) < 0:
        max((each for each in shares if each.pods), key=lambda each: each.order).pods -= 1
    _grow(free, shares)
    for _ in range(sum(missing.values())):
        if not _move(left, shares):
            break
    return shares


def _free(left: int, shares: Iterable[_Share]) -> int:
    return left - sum(each.pods * each.claim.gpus for each in shares)


def _grow(free: int, shares: Sequence[_Share]) -> None:
    """Give what is free to those that have least of their share, as far as it fits."""
    while True:
        fits = [each for each in shares if each.pods < each.missing and each.claim.gpus <= free]
        if not fits:
            return
        taker = min(fits, key=lambda each: each.order)
        taker.pods += 1
        free -= taker.claim.gpus


def _move(left: int, shares: Sequence[_Share]) -> bool:
    """Make room for a pod of one that has too little, at the cost of one that has too much."""
    takers = sorted((each for each in shares if each.above < 0), key=lambda each: each.order)
    givers = sorted(shares, key=lambda each: each.order, reverse=True)
    free = _free(left, shares)
    for taker in takers:
        for giver in givers:
            pods = -(-(taker.claim.gpus - free) // giver.claim.gpus)
            # Then the giver has no less of its share than the taker, and the next turn moves
            # nothing back.
            if 0 < pods <= giver.pods and giver.above - pods >= taker.above + 1:
                giver.pods -= pods
                taker.pods += 1
                _grow(_free(left, shares), shares)
                return True
    return False
