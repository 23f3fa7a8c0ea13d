"""Pushes a policy to the pods that do not hold it yet, all at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from headway_operator.act.lease import Leadership
from headway_operator.act.signing import KeyRing
from headway_operator.metrics import PUSH_SECONDS, PUSHES
from headway_operator.observe.records import PodRecord
from headway_operator.observe.sidecar_client import Answer, SidecarClient
from headway_operator.observe.sidecars import ACCEPTED, Outcome, Sidecars, parse_stamp
from headway_runtime.policy import Policy, SignedPolicy, Stamp


class PolicyPusher:
    """Signs policies and delivers them."""

    def __init__(
        self, client: SidecarClient, keys: KeyRing, leadership: Leadership, sidecars: Sidecars
    ) -> None:
        self._client = client
        self._keys = keys
        self._leadership = leadership
        self._sidecars = sidecars

    async def push(self, policy: Policy, pods: Sequence[PodRecord]) -> bool:
        """Deliver a policy. Returns whether any pod took it, or refuses it since now.

        Raises:
            NotLeaderError: this process does not lead (any more).
        """
        if not pods:
            return False
        self._leadership.require()
        signed = self._keys.sign(policy)
        return any(await asyncio.gather(*(self._push_to(pod, policy, signed) for pod in pods)))

    async def _push_to(
        self, pod: PodRecord, policy: Policy, signed: Sequence[SignedPolicy]
    ) -> bool:
        outcome, stamp = Outcome.UNKNOWN_KEY, None
        for envelope in signed:
            with PUSH_SECONDS.time():
                answer = await self._client.put_policy(pod, envelope.to_json())
            outcome, stamp = _read(answer)
            PUSHES.labels(outcome=outcome).inc()
            if outcome is not Outcome.UNKNOWN_KEY:
                break
        if outcome in ACCEPTED and stamp != policy.stamp:
            outcome = Outcome.UNEXPECTED
        return self._sidecars.pushed(pod.uid, outcome, stamp)


def _read(answer: Answer | None) -> tuple[Outcome, Stamp | None]:
    if answer is None:
        return Outcome.UNREACHABLE, None
    try:
        return Outcome(str(answer.get("outcome"))), parse_stamp(answer.get("stamp"))
    except ValueError:
        return Outcome.UNEXPECTED, None
