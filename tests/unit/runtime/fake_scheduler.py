"""A made-up scheduler that treats its waiting queue as vLLM does in either range of versions."""

from __future__ import annotations

from collections import Counter, deque
from types import SimpleNamespace
from typing import Any

from headway_runtime.executors.vllm.adapters import ActiveLimitAdapter, RunningLimitAdapter
from headway_runtime.policy import Mode, TrafficClass
from headway_runtime.scheduling.planner import plan_step
from tests.unit.runtime.engines import Status, request, scheduler
from tests.unit.runtime.policies import policy

MOST_RUNNING = 12
OBJECTIVES = {"fast": {"ttft_ms": 100}, "batch": {"deadline_s": 60}, "bulk": {}}


def classes(**limits: int | None) -> tuple[TrafficClass, ...]:
    """The classes that requests name, with these limits."""
    return tuple(
        TrafficClass(name, **objectives, max_running=limits.get(name))
        for name, objectives in OBJECTIVES.items()
    )


class FakeScheduler:
    """Runs an adapter step by step.

    Attributes:
        engine: what the adapter drives.
        adapter: the adapter.
        skips: whether requests that are not ready get a queue of their own, as up to 0.30.
    """

    def __init__(self, *, skips: bool, **limits: int | None) -> None:
        self.skips = skips
        self.engine = scheduler(max_num_active_reqs=MOST_RUNNING, max_num_running_reqs=MOST_RUNNING)
        if skips:
            self.engine.skipped_waiting = deque()
        self.adapter = (RunningLimitAdapter if skips else ActiveLimitAdapter)(self.engine)
        self._counter = 0
        self._added = 0
        self.limits: dict[str, int | None] = {}
        self.set_policy(**limits)

    def set_policy(self, mode: Mode = Mode.ACT, **limits: int | None) -> None:
        """The operator changes limits or mode."""
        self._counter += 1
        self.limits = limits
        self.adapter.adopt(policy(1, 1, self._counter, mode=mode, classes=classes(**limits)))

    @property
    def waiting(self) -> list[Any]:
        return [*getattr(self.engine, "skipped_waiting", ()), *self.engine.waiting]

    @property
    def running(self) -> Counter[str]:
        return Counter(kind_of(each) for each in self.engine.running)

    def add(self, kind: str, *, ready: bool = True, arrival_s: float | None = None) -> Any:
        """A request arrives."""
        self._added += 1
        arrival = float(self._added) if arrival_s is None else arrival_s
        new = request(f"{kind}-{self._added}", arrival, {"headway_class": kind})
        if not ready:
            new.status = Status.WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR
            new.structured_output_request = SimpleNamespace(_grammar=None)
        own = self.skips and not ready
        (self.engine.skipped_waiting if own else self.engine.waiting).append(new)
        self.engine.requests[new.request_id] = new
        self.adapter.added(new)
        return new

    def step(self, most: int = MOST_RUNNING) -> list[str]:
        """A planned step that admits up to ``most`` requests; those admitted."""
        self.adapter.apply(plan_step(self.adapter.observe(), lambda: False))
        return self._scheduled(most)

    def stock_step(self, most: int = MOST_RUNNING) -> list[str]:
        """A step that the engine decides alone."""
        return self._scheduled(most)

    def preempt(self) -> None:
        """The request admitted last loses its blocks, which a step does instead of admitting."""
        lost = self.engine.running.pop()
        lost.status = Status.PREEMPTED
        self.engine.waiting.appendleft(lost)

    def finish(self, index: int) -> None:
        """A request ends with its last token."""
        gone = self.engine.running.pop(index)
        self.adapter.left([gone.request_id])

    def abort(self, index: int) -> None:
        """A client gives up a waiting request."""
        gone = self.waiting[index]
        for queue in (self.engine.waiting, getattr(self.engine, "skipped_waiting", deque())):
            kept = [each for each in queue if each is not gone]
            queue.clear()
            queue.extend(kept)
        self.adapter.left([gone.request_id])

    def _scheduled(self, most: int) -> list[str]:
        engine, passed_over, admitted = self.engine, [], []
        limit = getattr(engine, self.adapter.admission_limit)
        while len(admitted) < most and len(engine.running) < limit:
            skipped = getattr(engine, "skipped_waiting", None)
            queue = skipped or engine.waiting
            if not queue:
                break
            first = queue.popleft()
            if is_blocked(first):
                passed_over.append(first)
                continue
            first.status = Status.RUNNING
            engine.running.append(first)
            admitted.append(first.request_id)
        (engine.skipped_waiting if self.skips else engine.waiting).extendleft(reversed(passed_over))
        self.adapter.restore()
        self.adapter.left(admitted)
        return admitted


def kind_of(waiting: Any) -> str:
    return str(waiting.request_id.partition("-")[0])


def is_blocked(waiting: Any) -> bool:
    if waiting.status is not Status.WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR:
        return False
    return waiting.structured_output_request._grammar is None
