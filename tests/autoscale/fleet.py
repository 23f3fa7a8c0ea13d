"""The pods of a service: they load, share its requests by chance, and drain when they are to go."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from headway_runtime.executors.simulated.request import Arrival
from tests.autoscale.cases import Case
from tests.autoscale.fluid_pod import FluidPod
from tests.autoscale.pod import Answered, Pod

START_SECONDS = 60.0
"""A pod takes requests so long after it was made, and costs a GPU in the meantime."""


class Fleet:
    """Pods as a Deployment keeps them.

    Attributes:
        pods: that were not removed, oldest first.
        draining: removed and not gone.
        now_s: the time.

    Args:
        case: what the engines are.
        replicas: pods there are at the beginning, ready.
        seed: of chance in engines and in whom a request goes to.
    """

    def __init__(self, case: Case, replicas: int, seed: int) -> None:
        self._case = case
        self._kind: type[Pod | FluidPod] = FluidPod if case.is_fluid else Pod
        self._seed = seed
        self._chance = Random(seed)  # noqa: S311 - no secret
        self._made = 0
        self._gone: list[Pod | FluidPod] = []
        self._gpu_seconds = 0.0
        self.now_s = 0.0
        self.draining: list[Pod | FluidPod] = []
        self.pods = [self._new(0.0) for _ in range(replicas)]

    @property
    def ready(self) -> list[Pod | FluidPod]:
        """Pods that take requests."""
        return [each for each in self.pods if each.ready_s <= self.now_s]

    @property
    def open(self) -> int:
        """Requests that have not ended."""
        return sum(each.open for each in (*self.pods, *self.draining))

    @property
    def gpu_seconds(self) -> float:
        """GPU time of pods that are gone."""
        return self._gpu_seconds

    @property
    def answered(self) -> list[Answered]:
        """All requests that ended."""
        pods = (*self._gone, *self.draining, *self.pods)
        return [answered for pod in pods for answered in pod.answered]

    def scale(self, replicas: int) -> None:
        """Have so many pods: new ones load; the newest go, those that load first."""
        while len(self.pods) < replicas:
            self.pods.append(self._new(self.now_s + START_SECONDS))
        while len(self.pods) > replicas:
            # As a ReplicaSet ranks them: not ready before ready, young before old.
            self._remove(self.pods.pop())

    def run(self, until_s: float, arrivals: Sequence[Arrival]) -> None:
        """Let these requests come and time pass; each goes to any pod that is ready now."""
        ready = self.ready
        for each in arrivals:
            self._chance.choice(ready).send(each)
        for pod in (*self.pods, *self.draining):
            pod.run(until_s)
        self.now_s = until_s
        for pod in [each for each in self.draining if not each.open]:
            self.draining.remove(pod)
            self._leave(pod, max(pod.ended_s, pod.begun_s))

    def _new(self, ready_s: float) -> Pod | FluidPod:
        self._made += 1
        seed = 1000 * self._seed + self._made
        return self._kind(f"pod-{self._made}", self._case, self.now_s, ready_s, seed)

    def _remove(self, pod: Pod | FluidPod) -> None:
        pod.draining = True
        if pod.open:
            self.draining.append(pod)
        else:
            self._leave(pod, self.now_s)

    def _leave(self, pod: Pod | FluidPod, at_s: float) -> None:
        self._gone.append(pod)
        self._gpu_seconds += at_s - pod.begun_s
