"""What is remembered between reconciliations. All of it can be lost: it is then found out again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headway_operator.api.labels import CHILD_SLOTS
from headway_operator.memory.claims import Claims
from headway_operator.memory.idleness import Idleness
from headway_operator.memory.memo import Memo
from headway_operator.memory.published import PublishedPolicy
from headway_operator.memory.refusal import Refusal
from headway_operator.memory.scaling import Scaling, timed_anew
from headway_operator.memory.shortage import ShortageWatch
from headway_operator.memory.tuning import Tuning
from headway_operator.observe.activators import Activators
from headway_operator.observe.own_writes import OwnWrites
from headway_operator.observe.parsing import ParsedSpec, parse_spec
from headway_operator.observe.quarantine import BadRequests
from headway_operator.observe.records import ChildRecord, ServiceKey, ServiceRecord
from headway_operator.observe.sidecars import Sidecars


@dataclass
class ServiceMemory:
    """What is remembered of one service.

    Attributes:
        uid: of the service; another one of the same name starts anew.
        published: the policy decided last.
        tuning: how its engines are tuned.
        scaling: how many pods it needed; None where others decide that.
        idleness: how long it was not used; None where it always has pods.
        shortages: for how long something has been short.
        told: the requests that broke something of which events told, by pod uid.
        refusals: objects the API server did not take, by slot.
        memo: results of decisions about it.
    """

    uid: str
    published: PublishedPolicy | None = None
    tuning: Tuning | None = None
    scaling: Scaling | None = None
    idleness: Idleness | None = None
    shortages: ShortageWatch | None = None
    told: Mapping[str, BadRequests] = field(default_factory=dict)
    refusals: dict[str, Refusal] = field(default_factory=dict)
    memo: Memo = field(default_factory=Memo)
    _generation: int = -1
    _parsed: ParsedSpec = field(default_factory=lambda: ParsedSpec(None))

    def forget_times(self, now: float) -> None:
        """What lasted until now (Unix time in seconds) begins anew, as in a new term."""
        if self.scaling is not None:
            self.scaling = timed_anew(self.scaling, now)
        self.idleness = self.shortages = None
        if self.published is not None:
            self.published = replace(self.published, since=now, before=())
        self.refusals = {slot: replace(each, retry_at=now) for slot, each in self.refusals.items()}

    def parsed(self, service: ServiceRecord) -> ParsedSpec:
        """The spec, read once per generation: it never changes within one."""
        if service.generation != self._generation:
            self._parsed, self._generation = parse_spec(service), service.generation
        return self._parsed


@dataclass
class Memory:
    """What is remembered.

    Attributes:
        sidecars: what sidecars said.
        activators: what activators told.
        services: InferenceServices as answered to our own writes.
        children: their objects as answered to our own writes.
        claims: what services want of the GPUs that they share.
    """

    sidecars: Sidecars = field(default_factory=Sidecars)
    activators: Activators = field(default_factory=Activators)
    services: OwnWrites[ServiceRecord] = field(default_factory=OwnWrites)
    children: OwnWrites[ChildRecord] = field(default_factory=OwnWrites)
    claims: Claims = field(default_factory=Claims)
    _by_service: dict[ServiceKey, ServiceMemory] = field(default_factory=dict)

    def of(self, service: ServiceRecord) -> ServiceMemory:
        """What is remembered of a service; nothing at first."""
        known = self._by_service.get(service.key)
        if known is None or known.uid != service.uid:
            known = self._by_service[service.key] = ServiceMemory(service.uid)
        return known

    def clock_was_set(self, by: float, now: float) -> None:
        """Nothing that happened is moved in time by that, and what lasts begins to last anew.

        Args:
            by: how many seconds it was set forwards.
            now: Unix time in seconds, by the clock as it is.
        """
        self.activators.shift(by)
        self.time_anew(now)

    def time_anew(self, now: float) -> None:
        """What lasts begins to last now (Unix time in seconds): nobody looked for a while."""
        for each in self._by_service.values():
            each.forget_times(now)

    def forget(self, key: ServiceKey) -> None:
        """The service is gone."""
        self._forget_work(key)
        self.claims.drop(key)

    def let_go(self, key: ServiceKey, epoch: int) -> None:
        """The service is being deleted: nothing is decided any more, but its pods may still run."""
        self._forget_work(key)
        self.claims.hold(key, epoch)

    def _forget_work(self, key: ServiceKey) -> None:
        self._by_service.pop(key, None)
        self.services.forget(key)
        for slot in CHILD_SLOTS:
            self.children.forget((slot, key))
