"""Who gets how many of the GPUs that are not enough for all.

Everybody gets the least it must have. What is left goes to the highest priority first. Among equals
that want more than that, it is divided in proportion to what each of them misses. Pods that run are
moved between equals only where that makes it fairer by more than a pod: one that is stopped here
and loads there serves nobody meanwhile, and what services want changes all the time.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

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


@dataclass
class _Equals:
    """The shares of equals, in order, those with pods of one size together.

    Whether a pod can go from one to another is a matter of their sizes and their places: looking
    for one among a thousand services ends after a few.
    """

    free: int
    by_size: dict[int, list[tuple[float, ServiceKey, _Share]]] = field(default_factory=dict)

    def put(self, share: _Share) -> None:
        """Take a share in, in its place."""
        insort(self.by_size.setdefault(share.claim.gpus, []), (*share.order, share))

    def give(self, share: _Share, pods: int) -> None:
        """Give a share so many pods more, or fewer."""
        ranks = self.by_size[share.claim.gpus]
        del ranks[bisect_left(ranks, share.order, key=lambda rank: rank[:2])]
        share.pods += pods
        self.free -= pods * share.claim.gpus
        self.put(share)

    def upwards(self, gpus: int) -> Iterator[_Share]:
        """Those with pods of so many GPUs, who has least of its share first."""
        return (share for _, _, share in self.by_size[gpus])

    def downwards(self, gpus: int) -> Iterator[_Share]:
        """The same, who has most of it first."""
        return (share for _, _, share in reversed(self.by_size[gpus]))


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
    ranked = _Equals(left - sum(each.pods * each.claim.gpus for each in shares))
    for share in shares:
        ranked.put(share)
    _shrink(ranked)
    _grow(ranked)
    for _ in range(sum(missing.values())):
        if not _move(ranked):
            break
    return shares


def _shrink(equals: _Equals) -> None:
    """Take what is too much from those that have most of their share."""
    while equals.free < 0:
        tops = (next(filter(_has_pods, equals.downwards(size)), None) for size in equals.by_size)
        equals.give(max(filter(None, tops), key=lambda each: each.order), -1)


def _grow(equals: _Equals) -> None:
    """Give what is free to those that have least of their share, as far as it fits."""
    while True:
        sizes = [size for size in equals.by_size if size <= equals.free]
        firsts = (next(filter(_misses_pods, equals.upwards(size)), None) for size in sizes)
        taker = min(filter(None, firsts), key=lambda each: each.order, default=None)
        if taker is None:
            return
        equals.give(taker, 1)


def _has_pods(share: _Share) -> bool:
    return share.pods > 0


def _misses_pods(share: _Share) -> bool:
    return share.pods < share.missing


def _move(equals: _Equals) -> bool:
    """Make room for a pod of one that has too little, at the cost of one that has too much.

    Of takers of one size only the first is looked at: where nobody gives to it, nobody gives to one
    that has more of its share.
    """
    firsts = (next(equals.upwards(size)) for size in equals.by_size)
    for taker in sorted((each for each in firsts if each.above < 0), key=lambda each: each.order):
        found = filter(None, (_giver(equals, taker, size) for size in equals.by_size))
        giver = max(found, key=lambda each: each.order, default=None)
        if giver is not None:
            equals.give(giver, -_asked_of(equals, taker, giver.claim.gpus))
            equals.give(taker, 1)
            _grow(equals)
            return True
    return False


def _asked_of(equals: _Equals, taker: _Share, gpus: int) -> int:
    """Pods of so many GPUs that make room for one of the taker."""
    return -(-(taker.claim.gpus - equals.free) // gpus)


def _giver(equals: _Equals, taker: _Share, gpus: int) -> _Share | None:
    """Who has most of its share of those with pods of that size, and can make room."""
    pods = _asked_of(equals, taker, gpus)
    for giver in equals.downwards(gpus) if pods > 0 else ():
        # Then the giver has no less of its share than the taker, and the next turn moves nothing
        # back.
        if giver.above - pods < taker.above + 1:
            return None
        if giver.pods >= pods:
            return giver
    return None
