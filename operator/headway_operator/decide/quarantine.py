"""Events for requests that broke an engine or the plug-in: one for each that is found out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headway_operator.decide.plan import Notice
from headway_operator.observe.quarantine import BadRequests
from headway_operator.snapshot import Snapshot

Told = Mapping[str, BadRequests]


def bad_requests_of(snapshot: Snapshot) -> Told:
    """What the pods tell now, by pod uid; a pod that tells nothing is not in it."""
    reports = {pod.uid: snapshot.reports.get(pod.uid) for pod in snapshot.pods}
    return {uid: each.bad for uid, each in reports.items() if each and each.bad != BadRequests()}


def decide_quarantine_notices(snapshot: Snapshot) -> Iterator[Notice]:
    """An event for what pods tell now and was not told of them before."""
    now = bad_requests_of(snapshot)
    for pod in snapshot.pods:
        found = now.get(pod.uid, BadRequests())
        before = snapshot.told.get(pod.uid, BadRequests())
        for each in found.quarantined:
            if each not in before.quarantined:
                text = (
                    f"The engine of pod {pod.name} died {each.crashes} times of the request with "
                    f"the fingerprint {each.fingerprint}, which is answered 422 for a while: "
                    "GET /quarantine on the pod's port 8900 tells for how long and whose it is"
                )
                yield Notice(warning=True, reason="RequestQuarantined", message=text)
        if found.set_aside and not before.set_aside:
            text = (
                f"Headway's plug-in in pod {pod.name} could make nothing of a request, which vLLM "
                "serves in its own order: the engine's log names the defect, report it"
            )
            yield Notice(warning=True, reason="RequestSetAside", message=text)
