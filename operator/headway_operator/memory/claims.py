"""What services want of the GPUs that they share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from headway_operator.memory.memo import Memo
from headway_operator.observe.records import ServiceKey


@dataclass(frozen=True)
class GpuClaim:
    """What one service wants.

    Attributes:
        key: the service.
        gpus: of each of its pods, at least 1.
        least: pods that it gets in any case.
        wanted: pods that it needs, as far as its own spec allows, at least ``least``.
        running: pods that were decided on last, without those that are given up for now.
        priority: who gets GPUs first; higher ones do.
    """

    key: ServiceKey
    gpus: int
    least: int
    wanted: int
    running: int
    priority: int = 0


@dataclass(frozen=True)
class GpuQuota:
    """The GPUs that services share, as one of them sees it.

    Attributes:
        gpus: that all may use together.
        others: what the other services want.
        is_complete: all others have told; before, nobody gets more than it has.
        own: what this one wanted last, by which the others go; None before it told.
        everybody: all that were told last, its own included.
        memo: what was decided about those; all services share it.
    """

    gpus: int
    others: tuple[GpuClaim, ...] = ()
    is_complete: bool = True
    own: GpuClaim | None = None
    everybody: tuple[GpuClaim, ...] = ()
    memo: Memo = field(default_factory=Memo, compare=False, repr=False)


@dataclass
class Claims:
    """The claims of all services that were looked at in this term of the operator."""

    _epoch: int = 0
    _by_service: dict[ServiceKey, GpuClaim | None] = field(default_factory=dict)
    _everybody: tuple[GpuClaim, ...] | None = None
    _memo: Memo = field(default_factory=Memo)

    def put(self, key: ServiceKey, claim: GpuClaim | None, gpus: int, epoch: int) -> bool:
        """A service was looked at.

        Args:
            key: the service.
            claim: what it wants; None without GPUs.
            gpus: that all may use together.
            epoch: the operator's term.

        Returns:
            Whether others may get more or fewer now: it wants or has others than before, and there
            are or were not enough for all.
        """
        self._begin(epoch)
        known = self._by_service.get(key)
        if claim == known:
            self._by_service[key] = claim
            return False
        before = self.wanted
        self._by_service[key] = claim
        self._everybody = None
        return max(before, self.wanted) > gpus

    @property
    def running(self) -> int:
        """GPUs of pods that were decided on."""
        return sum(each.running * each.gpus for each in self.everybody)

    @property
    def wanted(self) -> int:
        """GPUs of pods that run or are needed."""
        return sum(max(each.wanted, each.running) * each.gpus for each in self.everybody)

    @property
    def everybody(self) -> tuple[GpuClaim, ...]:
        """All claims; the same object until one of them changes."""
        if self._everybody is None:
            self._everybody = tuple(filter(None, self._by_service.values()))
        return self._everybody

    def keep(self, key: ServiceKey, epoch: int) -> None:
        """Of a service it cannot be told what it wants: what it wanted stands, at first nothing."""
        self._begin(epoch)
        self._by_service.setdefault(key, None)

    def hold(self, key: ServiceKey, epoch: int) -> None:
        """A service is being deleted: its pods hold their GPUs until it is gone, and it wants none.

        With a finalizer that can take as long as it likes.
        """
        self.keep(key, epoch)
        known = self._by_service[key]
        if known is not None:
            self._by_service[key] = replace(known, least=known.running, wanted=known.running)
            self._everybody = None

    def drop(self, key: ServiceKey) -> None:
        """The service is gone."""
        if self._by_service.pop(key, None) is not None:
            self._everybody = None

    def quota(self, gpus: int, key: ServiceKey, services: int, epoch: int) -> GpuQuota:
        """What a service sees.

        Args:
            gpus: that all may use together.
            key: the service.
            services: how many there are.
            epoch: the operator's term.
        """
        self._begin(epoch)
        known = len(self._by_service) + (key not in self._by_service)
        return GpuQuota(
            gpus,
            others=tuple(each for each in self.everybody if each.key != key),
            is_complete=known >= services,
            own=self._by_service.get(key),
            everybody=self.everybody,
            memo=self._memo,
        )

    def _begin(self, epoch: int) -> None:
        """What was in an earlier term is history: another operator may have led in between."""
        if epoch != self._epoch:
            self._epoch, self._by_service, self._everybody = epoch, {}, None
