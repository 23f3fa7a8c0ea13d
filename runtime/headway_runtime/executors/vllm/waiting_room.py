"""Who waits in vLLM: in which order, whose they are, and which class they belong to."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from headway_runtime.executors.vllm.origins import Origins
from headway_runtime.executors.vllm.request_class import Classifier
from headway_runtime.executors.vllm.set_aside import SetAside
from headway_runtime.executors.vllm.stand_still import StandStill
from headway_runtime.executors.vllm.waiting_queue import QueueView, WaitingQueue
from headway_runtime.policy import Mode, Policy, TrafficClass
from headway_runtime.scheduling.admission.waits import Queued
from headway_runtime.scheduling.plan import StepPlan
from headway_runtime.scheduling.tenants.tenancy import Tenancy
from headway_runtime.scheduling.view import Tenants


class WaitingRoom:
    """Keeps vLLM's waiting queue in the planner's order.

    Args:
        scheduler: vLLM's.

    Attributes:
        tenancy: what each tenant has waiting and was served.
        origins: whose the requests are.
        set_aside: those of which nothing can be told.
    """

    def __init__(self, scheduler: Any) -> None:
        self.tenancy: Tenancy[Any] = Tenancy()
        self.origins = Origins(self.tenancy.shares.known_as)
        self.set_aside = SetAside()
        self._scheduler = scheduler
        self._queue = WaitingQueue()
        self._late: set[str] = set()
        self._stand_still = StandStill()
        self._policy: Policy | None = None
        self._classifier: Classifier | None = None

    def adopt(self, policy: Policy | None) -> None:
        """Follow another policy. Only Act leaves its mark on the queue."""
        before, self._policy = self._policy, policy
        self._classifier = None
        if policy is not None:
            self._classifier = Classifier(
                policy,
                self._late,
                self._stand_still.misfits,
                self.origins,
                self.set_aside,
            )
            self.tenancy.declare(policy)
            self.origins.adopt(policy)
        waiting = self._scheduler.waiting
        is_same_order = _order_of(before) == _order_of(policy)
        if orders(before) and not orders(policy):
            self._queue.restore_arrival_order(waiting)
        elif not is_same_order:
            self._queue.unsettle(waiting, len(limited_classes(policy)))
        if not is_same_order:
            self.tenancy.nobody_waits()
            for each in waiting:
                self._waits(each)

    def look(self, *, admits: bool) -> QueueView:
        """What is in order, and what is to be put in order now.

        Raises:
            RuntimeError: no policy was adopted.
        """
        if self._classifier is None:
            raise RuntimeError("no policy was adopted")
        return self._queue.look(self._scheduler.waiting, self._classifier, admits=admits)

    def tenants(self) -> Tenants:
        """Who shares the engine."""
        if self._classifier is None:
            raise RuntimeError("no policy was adopted")
        return self.tenancy.view(time.monotonic(), self._classifier.waiting)

    def queued(self, free_slots: int) -> Queued:
        """What waits, for those who let requests in.

        Args:
            free_slots: how many more requests may run.
        """
        front = self.look(admits=True).front if self._scheduler.waiting else ()
        waits = self.tenancy
        return Queued(
            front, waits.waiting_by_class, waits.drain.per_s, free_slots, waits.turnover.per_s
        )

    def apply(self, plan: StepPlan) -> None:
        """Put the queue in the plan's order."""
        waiting = self._scheduler.waiting
        self._queue.settle(waiting, plan.placements)
        if plan.turns:
            self._queue.take_turns(waiting, plan.turns)
        # Should they lose their blocks they wait again, and are as late.
        self._late.update(plan.late_prefills)
        if plan.late:
            self._late.update(plan.late)
            self._put_in_order(plan.late)
        if plan.in_turn and self._classifier is not None:
            turns = [self.tenancy.request(each) for each in plan.in_turn]
            found = [each for each in turns if each is not None]
            self._queue.in_turn(waiting, found, self._classifier)
        if plan.first is not None:
            self._queue.bring_forward(waiting, plan.first)

    def pass_over(self) -> None:
        """Leave the step to vLLM although it was planned."""
        self._queue.pass_over(self._scheduler.waiting)

    def added(self, request: Any) -> bool:
        """VLLM has appended a request to its queue.

        Or it was told how a session goes on, or that it does not: then this is no request of its
        own, and nobody would tell when it is gone. Returns whether it is one.
        """
        self._queue.added()
        if self._scheduler.requests.get(request.request_id) is not request:
            return False
        try:
            self.origins.arrived(request)
        except Exception as error:  # noqa: BLE001 - whatever it is, others are to be planned
            self.set_aside.add(request.request_id, error)
        self._waits(request)
        return True

    def scheduled(self, output: Any) -> None:
        """What vLLM has put in front, or stands there for nothing, goes where it belongs."""
        preempted = output.preempted_req_ids
        if preempted:
            self._wait_again(preempted)
        if not orders(self._policy):
            return
        if preempted:
            self._put_in_order(tuple(preempted))
        misfit = self._stand_still.scheduled(output.num_scheduled_tokens, self._scheduler)
        if misfit is not None:
            self._put_in_order((misfit,))

    def left(self, request_ids: Iterable[str]) -> None:
        """These wait no more."""
        gone = tuple(request_ids)
        self._queue.left(gone)
        self.tenancy.left(gone)
        if self._classifier is not None:
            self._classifier.left(gone)

    def ended(self, request_ids: Iterable[str]) -> None:
        """These are gone."""
        gone = tuple(request_ids)
        self.tenancy.turnover.count(len(gone))
        if self._classifier is not None:
            self._classifier.forget(gone)
        self._late.difference_update(gone)
        self._stand_still.misfits.difference_update(gone)
        self.origins.ended(gone, time.time())
        for each in gone:
            self.set_aside.ended(each)

    def class_of(self, request: Any) -> TrafficClass | None:
        """The request's class, None when it has no objective."""
        if self._classifier is None or request.request_id in self.set_aside:
            return None
        return self._classifier.traffic_class(request)

    def admitted(self, request_id: str) -> bool:
        """A request runs. Returns whether its TTFT was given up."""
        self._stand_still.misfits.discard(request_id)
        self.origins.admitted(request_id, time.time())
        return request_id in self._late

    def _put_in_order(self, request_ids: Iterable[str]) -> None:
        """These wait, and stand elsewhere from now on."""
        if self._classifier is not None:
            self._classifier.forget(request_ids)
        self._queue.give_way(self._scheduler.waiting, request_ids)
        self._wait_again(request_ids)

    def _wait_again(self, request_ids: Iterable[str]) -> None:
        known = self._scheduler.requests
        for each in request_ids:
            if each in known:
                self._waits(known[each])

    def _waits(self, request: Any) -> None:
        classifier = self._classifier
        if classifier is not None:
            known = classifier.waiting(request)
            self.tenancy.waits(known, classifier.urgency(request), request)


def orders(policy: Policy | None) -> bool:
    """Whether waiting requests are put in the planner's order."""
    return policy is not None and policy.mode is Mode.ACT


def limited_classes(policy: Policy | None) -> list[str]:
    """Classes that have a lane."""
    if policy is None or not orders(policy):
        return []
    return [each.name for each in policy.classes if each.max_running is not None]


def _order_of(policy: Policy | None) -> tuple[object, ...] | None:
    """What the order of the waiting queue depends on; how high a limit is makes no difference."""
    if policy is None:
        return None
    objectives = [(each.name, each.ttft_ms, each.deadline_s) for each in policy.classes]
    return policy.mode, objectives, policy.default_class, limited_classes(policy)
