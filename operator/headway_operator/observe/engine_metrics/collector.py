"""Collects every pod's metrics once a tick, from Prometheus or, failing that, from the pod."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from headway_operator.observe.cluster import Cluster
from headway_operator.observe.engine_metrics.direct import parse_exposition
from headway_operator.observe.engine_metrics.prometheus import (
    PodName,
    PodSeries,
    Prometheus,
    PrometheusError,
)
from headway_operator.observe.engine_metrics.reading import (
    MetricMissingError,
    Series,
    read_sample,
)
from headway_operator.observe.engine_metrics.sample import (
    HISTORY_SECONDS,
    EngineSample,
    History,
    ServiceMetrics,
    Source,
)
from headway_operator.observe.records import PodRecord

PERIOD_SECONDS = 5.0
STALE_SECONDS = 2 * PERIOD_SECONDS
"""A sample older than two periods is not acted on."""
IDLE_PODS_A_TICK = 50
"""Of pods that are asked directly and have nothing to do, this many are asked in one tick: asking
thousands of idle pods every 5 s would cost the operator a core."""

TRIES = 3
"""A pod that never answered is asked again in the next tick, so many times in all; only then has it
no metrics, and waits for its turn like everybody else."""

SETTLING_SECONDS = 30.0
"""For so long after its metrics came from another source a pod is worth a look in every tick."""

NOT_CONFIGURED = "no Prometheus is configured (the chart's value prometheus.url)"


class MetricsClient(Protocol):
    """Asks a pod for its exposition."""

    async def metrics(self, pod: PodRecord) -> str | None:
        """The text; None if there is no usable one in time."""


@dataclass
class _PodMetrics:
    history: list[EngineSample]
    source: Source
    since: float
    collection: int
    usable_until: float
    missing: str = ""


class Collector:
    """Keeps the histories of all pods.

    Args:
        prometheus: None when there is none.
        pods: asks pods directly.
        clock: Unix time in seconds.
    """

    def __init__(
        self, prometheus: Prometheus | None, pods: MetricsClient, clock: Callable[[], float]
    ) -> None:
        self._prometheus = prometheus
        self._pods = pods
        self._clock = clock
        self._collection = 0
        self._collected_at = float("-inf")
        self._trouble = "" if prometheus else NOT_CONFIGURED
        self._known: dict[str, _PodMetrics] = {}
        self._asked_last: dict[str, int] = {}
        self._unanswered: dict[str, int] = {}

    async def collect(self, cluster: Cluster) -> dict[Source, int]:
        """Take in the newest samples. Returns how many pods were read from each source."""
        alive = [pod for pods in cluster.pods.values() for pod in pods if pod.takes_policies]
        uids = {pod.uid for pod in alive}
        # Series of pods that are gone are never looked at again.
        self._known = {uid: each for uid, each in self._known.items() if uid in uids}
        self._asked_last = {uid: at for uid, at in self._asked_last.items() if uid in uids}
        self._unanswered = {uid: n for uid, n in self._unanswered.items() if uid in uids}
        self._collection += 1
        found = await self._ask_prometheus()
        fresh = [pod for pod in alive if self._take(pod, found.get((pod.namespace, pod.name)))]
        taken = {pod.uid for pod in fresh}
        asked = self._turn([pod for pod in alive if pod.uid not in taken])
        cadence = max(1.0, len(alive) / IDLE_PODS_A_TICK) * STALE_SECONDS
        answers = await asyncio.gather(*(self._ask(pod, cadence) for pod in asked))
        self._collected_at = self._clock()
        return {Source.PROMETHEUS: len(fresh), Source.DIRECT_SCRAPE: sum(answers)}

    def metrics(self, pods: Iterable[PodRecord]) -> ServiceMetrics:
        """What is known of a service's pods."""
        now, asked = self._clock(), tuple(pods)
        usable = {
            pod.uid: known
            for pod in asked
            if (known := self._known.get(pod.uid)) and now <= known.usable_until
        }
        missing = min((each.missing for each in usable.values() if each.missing), default="")
        histories = {uid: _history(each) for uid, each in usable.items() if not each.missing}
        return ServiceMetrics(
            collection=max((usable[uid].collection for uid in histories), default=0),
            pods=histories,
            source=_source([usable[uid] for uid in histories]),
            since=max((usable[uid].since for uid in histories), default=0.0),
            missing=missing,
            trouble=self._trouble,
            expected=self._prometheus is not None,
            # Who has just begun to lead, or does so again, has asked nobody meanwhile.
            collected=now - self._collected_at <= STALE_SECONDS,
            unasked=any(pod.takes_policies and self._is_yet_to_answer(pod) for pod in asked),
        )

    def forget(self) -> None:
        """The clock was set: how old the samples are is not known any more."""
        self._known = {}

    def has_work(self, pods: Iterable[PodRecord]) -> bool:
        """Whether any of the pods has requests, or metrics that have just come, gone or moved."""
        now = self._clock()
        return any(self._is_lively(pod, now) for pod in pods)

    def _is_lively(self, pod: PodRecord, now: float) -> bool:
        known = self._known.get(pod.uid)
        if known is None:
            return pod.takes_policies
        settling = now - known.since < SETTLING_SECONDS
        return settling or now > known.usable_until or not self._is_idle(pod)

    def _is_yet_to_answer(self, pod: PodRecord) -> bool:
        return pod.uid not in self._known and self._unanswered.get(pod.uid, 0) < TRIES

    async def _ask_prometheus(self) -> Mapping[PodName, PodSeries]:
        if self._prometheus is None:
            return {}
        try:
            found = await self._prometheus.newest()
        except PrometheusError as error:
            self._trouble = str(error)
            return {}
        self._trouble = ""
        return found

    def _take(self, pod: PodRecord, found: PodSeries | None) -> bool:
        """Take what Prometheus has of a pod. Returns whether that is new enough."""
        if found is None or found.age_s > STALE_SECONDS:
            if self._prometheus is not None and not self._trouble:
                self._trouble = _not_scraped(found)
            return False
        at = self._clock() - found.age_s
        self._remember(pod, found.series, at, Source.PROMETHEUS, at + STALE_SECONDS)
        return True

    def _turn(self, pods: list[PodRecord]) -> list[PodRecord]:
        """Which of the pods are asked directly now: all that are busy, some of the idle ones."""
        idle = [pod for pod in pods if self._is_idle(pod)]
        idle.sort(key=self._place)
        left_out = {pod.uid for pod in idle[IDLE_PODS_A_TICK:]}
        asked = [pod for pod in pods if pod.uid not in left_out]
        self._asked_last.update({pod.uid: self._collection for pod in asked})
        return asked

    def _place(self, pod: PodRecord) -> tuple[bool, int]:
        tried_in_vain = pod.uid in self._unanswered and self._is_yet_to_answer(pod)
        return not tried_in_vain, self._asked_last.get(pod.uid, -1)

    def _is_idle(self, pod: PodRecord) -> bool:
        known = self._known.get(pod.uid)
        if known is None or not known.history:
            return True
        newest = known.history[-1]
        return newest.running + newest.waiting == 0

    async def _ask(self, pod: PodRecord, usable_s: float) -> bool:
        text = await self._pods.metrics(pod)
        series = None if text is None else _exposed(text)
        if series is None:
            self._unanswered[pod.uid] = self._unanswered.get(pod.uid, 0) + 1
            return False
        self._unanswered.pop(pod.uid, None)
        now = self._clock()
        self._remember(pod, series, now, Source.DIRECT_SCRAPE, now + usable_s)
        return True

    def _remember(
        self,
        pod: PodRecord,
        series: Iterable[Series],
        at: float,
        source: Source,
        usable_until: float,
    ) -> None:
        known = self._known.get(pod.uid)
        if known and known.history and at < known.history[-1].at - STALE_SECONDS:
            known = None  # Not by a source that is late: the clock was set back.
        history = known.history if known else []
        missing = ""
        try:
            sample = read_sample(series, at)
        except MetricMissingError as error:
            missing = str(error)
        else:
            if not history or at > history[-1].at:
                history = [*history, sample]
        history = [each for each in history if each.at >= at - HISTORY_SECONDS]
        since = known.since if known and known.source is source else self._clock()
        self._known[pod.uid] = _PodMetrics(
            history, source, since, self._collection, usable_until, missing
        )


def _exposed(text: str) -> list[Series] | None:
    """The series of an exposition; None where it is none, as one that was cut off."""
    try:
        return list(parse_exposition(text))
    except ValueError:
        return None


def _history(known: _PodMetrics) -> History:
    return tuple(known.history)


def _source(usable: Iterable[_PodMetrics]) -> Source | None:
    sources = {each.source for each in usable}
    if not sources:
        return None
    return Source.DIRECT_SCRAPE if Source.DIRECT_SCRAPE in sources else Source.PROMETHEUS


def _not_scraped(found: PodSeries | None) -> str:
    if found is None:
        return "Prometheus has no series of some pods"
    return f"Prometheus's newest samples of some pods are older than {STALE_SECONDS:.0f} s"
