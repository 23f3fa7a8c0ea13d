"""Records a fault from before it is caused until after it is over."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Any

from tests.e2e.service import Service, condition_of
from tests.e2e.waiting import polling, wait_until
from tests.faults import pod_state
from tests.faults.recording import Happening, Recording
from tests.faults.traffic import Traffic
from tests.faults.watcher import Watcher

_BEFORE_S = 4
_AFTER_S = 5
_STAYS_S = 3
_PERIOD_S = 1.0
"""Each look starts a kubectl, whose processor time the engines on the same cores lack."""
_TO_BE_SEEN_S = 3
"""Longer than the watcher's period, and than a request takes."""


class Fault:
    """A fault that is being recorded: the test says what it does.

    Attributes:
        recording: what was noted so far.
        begun_s: monotonic time at which it began.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording, self.begun_s = recording, time.monotonic()

    def did(self, text: str) -> None:
        """Note what the test does next."""
        self.recording.happenings.append(Happening(self.now_s(), "done", text))

    def cause(self, text: str) -> None:
        """What comes next is the fault."""
        self.recording.marks["caused"] = self.now_s()
        self.did(text)

    def unlisted(self, text: str) -> None:
        """A router sends nothing to the pod any more to which the fault happened."""
        self.recording.marks["unlisted"] = self.now_s()
        self.did(text)

    def shown(self, service: Service, kind: str, status: str, reason: str) -> str:
        """Wait until the service says what is wrong; gives the message.

        Raises:
            TimeoutError: it did not.
        """
        found = wait_until(
            lambda: condition_of(service.read(), kind),
            lambda found: (found["status"], found["reason"]) == (status, reason),
            timeout_s=240,
            what=f"{kind} {status}, {reason}",
            period_s=_PERIOD_S,
        )
        self.recording.marks["shown"] = self.now_s()
        time.sleep(_TO_BE_SEEN_S)
        return str(found["message"])

    def mend(self, text: str) -> None:
        """What comes next is the repair."""
        self.recording.marks["mended"] = self.now_s()
        self.did(text)

    def recovered(self, service: Service, pods: int = 1, timeout_s: float = 400) -> None:
        """Wait until the service has that many pods and is Ready, and Kubernetes says so too.

        Raises:
            TimeoutError: it was not.
        """
        since_s: float | None = None
        for stored, found in polling(
            lambda: (service.read(), service.pods()), timeout_s, _PERIOD_S
        ):
            settled = is_settled(stored) and len(found) == pods
            if not (settled and all(pod_state.is_ready(each) for each in found)):
                since_s = None
                continue
            since_s = self.now_s() if since_s is None else since_s
            # What an operator says that has not heard of the fault yet does not stay.
            if self.now_s() - since_s > _STAYS_S:
                self.recording.marks["recovered"] = since_s
                return
        raise TimeoutError(f"not Ready with {pods} pods in {timeout_s:.0f} s")

    def watch_for(self, seconds: float) -> None:
        """Let time go by."""
        time.sleep(seconds)

    def seen(self, kind: str, text: str) -> bool:
        """Whether something that was recorded holds a text."""
        return any(each.kind == kind and text in each.text for each in self.recording.happenings)

    def now_s(self) -> float:
        """Seconds since the recording began."""
        return time.monotonic() - self.begun_s


def is_settled(stored: Mapping[str, Any]) -> bool:
    """Whether the current spec is served by as many pods as it wants, and nothing is amiss."""
    status = stored.get("status", {})
    if status.get("observedGeneration") != stored["metadata"]["generation"]:
        return False
    wanted = {"Ready": "True", "Stalled": "False", "Progressing": "False", "PolicyApplied": "True"}
    found = {kind: condition_of(dict(stored), kind)["status"] for kind in wanted}
    return found == wanted and status.get("readyReplicas") == stored["spec"].get("replicas", 1)


@contextlib.contextmanager
def recorded(
    recording: Recording, service: Service, api_url: str, traffic: Traffic | None = None
) -> Iterator[Fault]:
    """Record while the block runs, with a client if there is one.

    Args:
        recording: what to fill.
        service: the service it happens to.
        api_url: the API server, reachable without credentials.
        traffic: a client that has not started yet.
    """
    fault = Fault(recording)
    watcher = Watcher(api_url, service.namespace, service.name, recording, fault.begun_s)
    watcher.start()
    if traffic is not None:
        traffic.start(fault.begun_s)
    try:
        time.sleep(_BEFORE_S)
        yield fault
        time.sleep(_AFTER_S)
    finally:
        if traffic is not None:
            recording.requests = traffic.stop()
        watcher.stop()
        recording.happenings.sort(key=lambda each: each.at_s)
