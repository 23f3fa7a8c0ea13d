"""All wired together: every change and every 5 s a service is observed, decided, acted on."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
import uuid

import aiohttp
import kopf
from kubernetes.aio.client import ApiException

from headway_operator.act.actor import Actor
from headway_operator.act.apply import Applier
from headway_operator.act.cluster_client import ClusterClient
from headway_operator.act.events import EventRecorder
from headway_operator.act.lease import LEASE_NAME, Leadership, NotLeaderError
from headway_operator.act.listing import WatchedObjects
from headway_operator.act.push import PolicyPusher
from headway_operator.act.signing import KeyRing, SigningKeyError
from headway_operator.act.status import StatusWriter
from headway_operator.api import KIND
from headway_operator.decide import Plan, decide
from headway_operator.environment import Environment
from headway_operator.errors import told
from headway_operator.memory.memory import Memory
from headway_operator.metrics import (
    COLLECT_SECONDS,
    CONDITION,
    DEGRADATION,
    LEADER,
    METRICS_SOURCE,
    RECONCILE_SECONDS,
    SERVICES,
    UNREACHED,
    show_gpus,
    show_nothing,
)
from headway_operator.observe.activator_watch import ActivatorWatch
from headway_operator.observe.clock_watch import ClockWatch
from headway_operator.observe.cluster import Cluster
from headway_operator.observe.engine_metrics.collector import Collector
from headway_operator.observe.engine_metrics.prometheus import Prometheus
from headway_operator.observe.instant import Instant
from headway_operator.observe.polling import Poller
from headway_operator.observe.reach import unreached_services
from headway_operator.observe.records import ServiceKey
from headway_operator.observe.relist import Relist
from headway_operator.observe.sidecar_client import SidecarClient
from headway_operator.observer import Observer
from headway_operator.rounds import Rounds
from headway_operator.snapshot import OperatorFacts, Snapshot
from headway_operator.watching import Listener, watch_registry, watch_settings
from headway_operator.work_queue import WorkQueue, backoff_seconds

TICK_SECONDS = 5
RELIST_SECONDS = 300
UNSEEN_SECONDS = 120
"""Until the next comparison, where something exists that the watches have not shown: it is new, or
one of them is not there. Without services at the start, nothing else shows that. Long enough for a
busy watch to catch up, since what is unseen twice ends the operator."""
MISSED_SECONDS = 3
"""From when a watch began anew until what was deleted meanwhile is looked for: others do so too."""
SILENT_LOOKS = 20
"""The Lease is looked at every 3 s, and renewed as often by who leads. A watch that shows none of
that for so many looks, which take a minute at least, is dead. Looks that fail do not count: an API
server that is away shows nobody anything, and another process would not find it either."""
LOOKS_IN_VAIN = 120
"""What existed at the start is compared with what is known every second. Where so many comparisons
find nothing more of it known, a kind is not watched at all: kopf looks once which kinds there are,
and an API server may not serve a new one yet when another does. Who leads so would do nothing, and
keep the others from it."""
BLIND_AFTER = 5
"""Comparisons in a row that failed: some 15 s."""
_WORKERS = 16
_LIVENESS_ENDPOINT = "http://0.0.0.0:8080/healthz"

logger = logging.getLogger(__name__)


class Operator:
    """Everything wired together."""

    def __init__(self, environment: Environment, client: ClusterClient, keys: KeyRing) -> None:
        identity = f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}"
        self.environment = environment
        self.keys = keys
        self.memory = Memory()
        self.cluster = Cluster()
        self.queue: WorkQueue[ServiceKey] = WorkQueue()
        everything = WatchedObjects(client, environment.watch_namespaces)
        self.relist = Relist(self.cluster, everything, self.queue.add)
        self.sidecars = SidecarClient()
        self.leadership = Leadership(client, environment.namespace, identity, self.begin_term)
        self.activator_watch = ActivatorWatch(self.memory.activators, self.queue.add, time.time)
        self.poller = Poller(self.sidecars, self.memory.sidecars, self.queue.add)
        self.prometheus = connect_prometheus(environment)
        self.collector = Collector(self.prometheus, self.sidecars, time.time)
        self.clock_watch = ClockWatch(time.time, time.monotonic)
        self.rounds = Rounds(self.collector.has_work)
        self.observer = Observer(self.cluster, client, self.memory, self.collector.metrics)
        self.actor = Actor(
            applier=Applier(client, self.leadership, self.memory),
            pusher=PolicyPusher(self.sidecars, keys, self.leadership, self.memory.sidecars),
            status=StatusWriter(client, self.leadership, self.memory),
            events=EventRecorder(client, self.leadership, identity),
            memory=self.memory,
        )
        self.term: int | None = None
        self.looks_when_alive = 0
        self.unreached = 0
        self.failed_comparisons = 0
        self.relisted = asyncio.Event()
        self.tasks: list[asyncio.Task[None]] = []

    async def reconcile(self, key: ServiceKey) -> None:
        """Observe, decide, act. Only the leader does; the others keep their view of the cluster."""
        epoch = self.leadership.epoch
        if epoch is None or not self.relist.complete:
            return
        now = self.now()
        snapshot = await self.observer.snapshot(key, self.facts(epoch))
        if snapshot is None:
            return
        plan = decide(snapshot, now)
        self.rounds.looked_at(key, is_quiet=plan.is_quiet)
        if self.claim(snapshot, plan):
            self.look_at_all()
        if await self.actor.carry_out(snapshot, plan, now):
            self.queue.add(key)

    def now(self) -> Instant:
        """The moment; what was timed by another clock than this is forgotten before."""
        self.watch_clock()
        return Instant.at(time.time())

    def watch_clock(self) -> None:
        """Forget what the clock has timed, if it was set."""
        by = self.clock_watch.jumped()
        if by:
            logger.warning("The clock was set by %+.0f s: all that lasts is timed anew", by)
            self.memory.clock_was_set(by, time.time())
            self.collector.forget()

    def claim(self, snapshot: Snapshot, plan: Plan) -> bool:
        """Note what a service wants of GPUs that are shared. Returns whether that is news."""
        epoch, key = snapshot.operator.epoch, snapshot.service.key
        if snapshot.quota is None:
            return False
        if snapshot.spec is None:
            self.memory.claims.keep(key, epoch)
            return False
        return self.memory.claims.put(key, plan.claim, snapshot.quota.gpus, epoch)

    def facts(self, epoch: int) -> OperatorFacts:
        """What decisions need to know of the operator itself."""
        return OperatorFacts(
            namespace=self.environment.namespace,
            runtime_image=self.environment.runtime_image,
            router_image=self.environment.router_image,
            public_keys=self.keys.public_keys(),
            epoch=epoch,
            gpu_quota=self.environment.gpu_quota,
            unreached=self.unreached,
        )

    async def work(self, key: ServiceKey) -> None:
        """Reconcile and measure."""
        began, outcome = time.perf_counter(), "error"
        try:
            await self.reconcile(key)
            outcome = "done"
        except NotLeaderError:
            outcome = "not leader"
        finally:
            RECONCILE_SECONDS.labels(outcome=outcome).observe(time.perf_counter() - began)
            service = self.cluster.service(key)
            if service is None or service.deleting:
                show_nothing(*key)  # it may have gone while it was looked at

    async def tick(self) -> None:
        """Look at the services, whatever happens, and at metrics, sidecars and keys."""
        trouble, due = "", time.monotonic()
        while True:
            # However long a tick takes, decisions are made every 5 s.
            due = max(due + TICK_SECONDS, time.monotonic())
            await asyncio.sleep(due - time.monotonic())
            self.watch_clock()
            LEADER.set(self.leadership.epoch is not None and self.sees_cluster)
            SERVICES.set(len(self.cluster.services))
            self.watch_activators()
            self.show_gpus()
            if self.leadership.epoch is not None:
                await asyncio.gather(
                    self.collect(), self.poller.poll_due(self.cluster, time.monotonic())
                )
            else:
                DEGRADATION.clear()
                CONDITION.clear()
                METRICS_SOURCE.clear()
            self.queue.add_idle(
                self.rounds.due(self.cluster.services, lambda key: self.cluster.pods.get(key, ()))
            )
            known, trouble = trouble, self.reload_keys()
            if trouble not in ("", known):
                logger.error("%s. The keys stay as they were", trouble)

    def watch_activators(self) -> None:
        """Ask the activators there are, as long as this process leads, and count who is silent."""
        activators = self.cluster.activators
        leads = self.leadership.epoch is not None
        self.activator_watch.watch(
            (key, pod) for key, pods in (activators.items() if leads else ()) for pod in pods
        )
        self.unreached = unreached_services(activators, self.memory.activators) if leads else 0
        UNREACHED.set(self.unreached)

    def show_gpus(self) -> None:
        """Show how far shared GPUs go; who does not lead has nothing to say of them."""
        leads, claims = self.leadership.epoch is not None, self.memory.claims
        show_gpus(self.environment.gpu_quota if leads else None, claims.running, claims.wanted)

    async def collect(self) -> None:
        """Take in the newest metrics of all pods."""
        with COLLECT_SECONDS.time():
            counts = await self.collector.collect(self.cluster)
        for source, count in counts.items():
            METRICS_SOURCE.labels(source=source).set(count)

    def reload_keys(self) -> str:
        """Look whether the signing keys have changed. Returns what is wrong with them, if any."""
        try:
            self.keys.reload()
        except SigningKeyError as error:
            return str(error)
        return ""

    async def compare(self) -> None:
        """Compare what is known with what exists; nothing is acted on before all is known."""
        while True:
            was_complete = self.relist.complete
            try:
                await self.relist.compare()
                self.failed_comparisons = 0
            except (ApiException, aiohttp.ClientError, TimeoutError) as error:
                self.failed_comparisons += 1
                logger.warning("Objects cannot be listed: %s", told(error))
            if self.relist.complete and not was_complete:
                self.look_at_all()
            await asyncio.sleep(self._until_next_comparison())

    def _until_next_comparison(self) -> float:
        """Seconds."""
        if self.failed_comparisons:
            return backoff_seconds(self.failed_comparisons, jitter=1)
        if not self.relist.complete:
            return 1
        return UNSEEN_SECONDS if self.relist.is_unsure else RELIST_SECONDS

    async def look_for_missed(self) -> None:
        """Drop what was deleted while a watch was not there, long before the next comparison."""
        while True:
            await self.relisted.wait()
            await asyncio.sleep(MISSED_SECONDS)
            self.relisted.clear()
            try:
                await self.relist.drop_missed()
            except (ApiException, aiohttp.ClientError, TimeoutError) as error:
                logger.warning("Objects cannot be listed: %s", told(error))
                self.relisted.set()

    def begun_anew(self) -> None:
        """A watch has listed what there is; at the start there is nothing that it has missed."""
        if self.relist.complete:
            self.relisted.set()

    @property
    def sees_cluster(self) -> bool:
        """Whether all is known: who may not list what there is leads in name only."""
        return self.relist.complete and self.failed_comparisons < BLIND_AFTER

    def begin_term(self) -> None:
        """Lead from now on.

        What pods said in an earlier term is history: another operator may have retuned them since,
        and who leads goes on from where they are now. In the same term, as after an API server that
        was away, nobody has looked for a while: no patience may have run out meanwhile.
        """
        if self.leadership.epoch != self.term:
            self.term = self.leadership.epoch
            self.memory.sidecars.keep_only(())
            self.poller.forget()
        else:
            self.memory.time_anew(time.time())
        self.look_at_all()

    def look_at_all(self) -> None:
        """Enqueue all services."""
        self.queue.add_idle(self.cluster.services)

    def gone(self, slot: str, key: ServiceKey, uid: str) -> None:
        """An object was deleted: what we wrote of it is history."""
        if slot == KIND:
            self.memory.forget(key)
            show_nothing(*key)
        else:
            self.memory.children.deleted((slot, key), uid)

    def alive(self) -> None:
        """An event of the Lease came through: the watch is alive."""
        self.looks_when_alive = self.leadership.looks

    def check(self) -> None:
        """The liveness probe.

        Raises:
            RuntimeError: events have not been processed for too long.
        """
        if self.relist.overlooked:
            raise RuntimeError(f"the watches do not show {self.relist.overlooked} objects")
        if self.relist.in_vain > LOOKS_IN_VAIN:
            raise RuntimeError("the watches do not show what existed at the start")
        silent = self.leadership.looks - self.looks_when_alive
        if silent > SILENT_LOOKS:
            raise RuntimeError(f"no event of Lease {LEASE_NAME} in {silent} looks at it")

    def stop(self) -> None:
        """Stop acting and hand the Lease back."""
        self.activator_watch.watch(())
        for task in self.tasks:
            task.cancel()

    async def run(self) -> None:
        """Run until a signal or a failure."""
        namespaces = self.environment.watch_namespaces
        listener = Listener(
            self.queue.add, self.gone, self.alive, self.check, self.stop, self.begun_anew
        )
        watched = {*namespaces, self.environment.namespace} if namespaces else ()
        async with asyncio.TaskGroup() as group:
            queue = self.queue.run(self.work, _WORKERS)
            looks = (self.tick(), self.compare(), self.look_for_missed())
            parts = (self.leadership.run(), queue, *looks)
            self.tasks = [group.create_task(part) for part in parts]
            await kopf.operator(
                registry=watch_registry(self.cluster, listener, namespaces),
                settings=watch_settings(LEASE_NAME),
                clusterwide=not namespaces,
                namespaces=sorted(watched),
                standalone=True,
                liveness_endpoint=_LIVENESS_ENDPOINT,
            )
            self.stop()
        await self.activator_watch.close()
        await self.sidecars.close()
        if self.prometheus is not None:
            await self.prometheus.close()


def connect_prometheus(environment: Environment) -> Prometheus | None:
    """The Prometheus to ask, if there is one."""
    access = environment.prometheus
    if access is None:
        return None
    return Prometheus(access.url, access.ca_file, access.token_file, environment.watch_namespaces)
