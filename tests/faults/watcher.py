"""Looks at a service once a second and notes what is new."""

from __future__ import annotations

import json
import string
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

from tests.e2e.service import KIND
from tests.faults import pod_state
from tests.faults.recording import Happening, Recording, Sample

_PERIOD_S = 1.0
_TIMEOUT_S = 5
_OF_INTEREST = frozenset({"Preempted", "TaintManagerEviction", "NodeNotReady"})
"""Events of Kubernetes that are no warnings."""


class Watcher:
    """Samples a service in a thread of its own.

    Args:
        api_url: the API server, reachable without credentials.
        namespace: of the service.
        name: of the service.
        recording: where to note what was seen.
        begun_s: monotonic time at which the recording began.
    """

    def __init__(
        self, api_url: str, namespace: str, name: str, recording: Recording, begun_s: float
    ) -> None:
        self._service = f"{api_url}/apis/headway.dev/v1alpha1/namespaces/{namespace}"
        self._service += f"/{KIND.partition('.')[0]}/{name}"
        core = f"{api_url}/api/v1/namespaces/{namespace}"
        engines = f"headway.dev/service%3D{name},app.kubernetes.io/component%3Dengine"
        self._pods = f"{core}/pods?labelSelector={engines}"
        self._events = f"{core}/events"
        self._name, self._recording, self._begun_s = name, recording, begun_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)
        self._conditions: dict[str, tuple[str, str]] = {}
        self._states: dict[str, str] = {}
        self._letters: dict[str, str] = {}
        self._known_events: set[str] = set()
        self._answered = True

    def start(self) -> None:
        """Begin; what is there now is not news."""
        self._look(first=True)
        self._thread.start()

    def stop(self) -> None:
        """One last look, and end."""
        self._stopping.set()
        self._thread.join()
        self._look()

    def _run(self) -> None:
        while not self._stopping.wait(_PERIOD_S - (time.monotonic() - self._begun_s) % _PERIOD_S):
            self._look()

    def _look(self, *, first: bool = False) -> None:
        at_s = time.monotonic() - self._begun_s
        try:
            service, pods, events = (
                _read(url) for url in (self._service, self._pods, self._events)
            )
        except OSError:
            self._note_answer(at_s, answered=False)
            self._recording.samples.append(Sample(at_s, answered=False))
            return
        self._note_answer(at_s, answered=True)
        found = pods["items"]
        self._recording.samples.append(
            Sample(
                at_s,
                answered=True,
                ready=sum(pod_state.is_ready(each) for each in found),
                pods=len(found),
                restarts=sum(pod_state.engine_restarts(each) for each in found),
            )
        )
        news = (*self._new_pods(found), *self._new_conditions(service), *self._new_events(events))
        kept = [each for each in news if not first or each[0] == "pod"]
        self._recording.happenings += [Happening(at_s, *each) for each in kept]

    def _note_answer(self, at_s: float, *, answered: bool) -> None:
        if answered != self._answered:
            text = f"the API server {'answers again' if answered else 'does not answer'}"
            self._recording.happenings.append(Happening(at_s, "cluster", text))
            self._answered = answered

    def _new_pods(self, pods: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
        states = {each["metadata"]["name"]: pod_state.told(each) for each in pods}
        for name in sorted(states):
            if name not in self._letters:
                self._letters[name] = string.ascii_uppercase[len(self._letters) % 26]
            if self._states.get(name) != states[name]:
                yield "pod", f"pod {self._letters[name]}: {states[name]}"
        for name in sorted(self._states.keys() - states.keys()):
            yield "pod", f"pod {self._letters[name]}: gone"
        self._states = states

    def _new_conditions(self, service: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """What changed; conditions that say the same of it in one line."""
        told: dict[str, list[str]] = {}
        for each in service.get("status", {}).get("conditions", []):
            now = each["status"], each["reason"]
            if self._conditions.get(each["type"]) != now:
                why = f"{each['reason']}: {self._readable(each['message'])}"
                told.setdefault(why, []).append(f"{each['type']} is {each['status']}")
            self._conditions[each["type"]] = now
        for why, conditions in told.items():
            yield "condition", f"{', '.join(conditions)}; {why}"

    def _new_events(self, events: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Headway's own; of Kubernetes' the first of a kind that warns of a pod."""
        for each in events["items"]:
            about = each["involvedObject"]
            kind, name = about.get("kind", ""), about.get("name", "")
            is_own = kind == KIND_NAME and name == self._name
            once = (
                f"{each['metadata']['uid']} {each.get('count')}"
                if is_own
                else (f"{name} {each['reason']}")
            )
            if once in self._known_events:
                continue
            self._known_events.add(once)
            if is_own:
                yield "event", f"{each['type']} {each['reason']}"
            elif name.startswith(self._name) and (
                each["type"] == "Warning" or each["reason"] in _OF_INTEREST
            ):
                letter = self._letters.get(name)
                subject = f"pod {letter}" if letter else kind
                yield "event", f"Kubernetes, of {subject}: {each['type']} {each['reason']}"

    def _readable(self, message: str) -> str:
        for name, letter in self._letters.items():
            message = message.replace(name, f"pod {letter}")
        return message


KIND_NAME = "InferenceService"


def _read(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:
        return dict(json.load(answer))
