"""Carries out plans."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from headway_operator.act.apply import Applier
from headway_operator.act.events import EventRecorder
from headway_operator.act.push import PolicyPusher
from headway_operator.act.status import StatusWriter
from headway_operator.decide import Plan, applied_notices
from headway_operator.memory.memory import Memory
from headway_operator.metrics import RETUNES, show_conditions, show_rung
from headway_operator.observe.instant import Instant
from headway_operator.snapshot import Snapshot

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Actor:
    """Everything the operator can do to the cluster."""

    applier: Applier
    pusher: PolicyPusher
    status: StatusWriter
    events: EventRecorder
    memory: Memory

    async def carry_out(self, snapshot: Snapshot, plan: Plan, now: Instant) -> bool:
        """Do what a plan says. Returns whether something was learned that may change the plan.

        Raises:
            NotLeaderError: this process does not lead (any more).
            kubernetes.aio.client.ApiException: the API server could not do it now.
        """
        remembered = self.memory.of(snapshot.service)
        remembered.published, remembered.tuning = plan.published, plan.tuning
        remembered.scaling, remembered.idleness = plan.scaling, plan.idleness
        remembered.told = plan.told
        took_no_step = plan.status.degradation == snapshot.service.status.degradation
        if took_no_step:
            remembered.shortages = plan.shortages
        show_rung(*snapshot.service.key, plan.rung)
        show_conditions(*snapshot.service.key, plan.status.conditions)
        for change in plan.changes:
            RETUNES.labels(what=change.what).inc()
            logger.info("%s: %s", snapshot.service.key, change)
        # Pods get their policy also while the API server is in trouble.
        pushed, applied = await asyncio.gather(
            self._push(plan), self._apply(snapshot, plan, now), return_exceptions=True
        )
        for result in (pushed, applied):
            if isinstance(result, BaseException):
                raise result
        if plan.status_changed:
            await self.status.write(snapshot.service, plan.status)
        # A step that the status does not hold is not taken: what led to it lasts still.
        remembered.shortages = plan.shortages
        accepted = [each for each in plan.applications if each.slot not in remembered.refusals]
        for notice in (*applied_notices(accepted), *plan.notices):
            await self.events.emit(snapshot.service, notice, now)
        return bool(pushed or applied)

    async def _push(self, plan: Plan) -> bool:
        if plan.published is None:
            return False
        return await self.pusher.push(plan.published.policy, plan.recipients)

    async def _apply(self, snapshot: Snapshot, plan: Plan, now: Instant) -> bool:
        learned = [
            await self.applier.apply(snapshot.service, application, now)
            for application in plan.applications
        ]
        return any(learned)
