"""What runs, and what of it a step computes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from headway_runtime.executors.simulated.kv_blocks import KvBlocks
from headway_runtime.executors.simulated.options import EngineOptions
from headway_runtime.executors.simulated.request import Request
from headway_runtime.executors.simulated.step import Step
from headway_runtime.executors.simulated.waiting_queue import WaitingQueue
from headway_runtime.scheduling.view import Limits


class Batch:
    """Running requests, in the order of their admission if nobody puts them in another one.

    Args:
        blocks: KV blocks they share.
        options: how the engine schedules.
    """

    def __init__(self, blocks: KvBlocks, options: EngineOptions) -> None:
        self.running: list[Request] = []
        self._blocks = blocks
        self._options = options
        self._group_left = 0

    def fill(self, limits: Limits, waiting: WaitingQueue, caps: Mapping[str, int]) -> Step:
        """Choose what the next step computes: running requests first, then waiting ones.

        Args:
            limits: of this step.
            waiting: who waits.
            caps: most tokens of running requests in this step, by request id; 0 leaves one out.
        """
        step = Step()
        longest = limits.token_budget
        if self._options.long_prefill_tokens and len(self.running) + len(waiting) > 1:
            longest = self._options.long_prefill_tokens
        index = 0
        while index < len(self.running) and step.tokens < limits.token_budget:
            request = self.running[index]
            tokens = min(request.remaining, limits.token_budget - step.tokens, longest)
            if caps:
                tokens = min(tokens, caps.get(request.request_id, tokens))
            if tokens:
                needed = request.computed + tokens
                if needed > request.room and not self._make_room(request, needed, waiting, step):
                    break
                step.add(request, tokens)
                if step.preempted:
                    # By priority, those that gave way to it may have stood before it.
                    index = self.running.index(request)
            index += 1
        if not step.preempted:
            self._admit(limits, waiting, step, longest)
        step.begin()
        return step

    def give_up(self, request_ids: Collection[str]) -> None:
        """The TTFT of these running requests is given up."""
        for request in self.running if request_ids else ():
            if request.request_id in request_ids:
                request.late = True

    def put_last(self, is_last: Callable[[Request], bool]) -> None:
        """Put these running requests behind all others: they lose their blocks first."""
        self.running.sort(key=is_last)

    def finish(self, step: Step, waiting: WaitingQueue) -> list[Request]:
        """The output of a step is there.

        Returns:
            Requests that got a token by it.
        """
        for request, _ in step.chunks:
            request.steps_under_way -= 1
        ended = False
        for request in step.sampled:
            # What was under way when a request lost its blocks still comes, but was forgotten.
            if request.under_way:
                request.under_way -= 1
            request.known += 1
            if request.known >= request.total:
                ended = True
                if not request.room:
                    waiting.remove(request)
                self._blocks.free(request)
        if ended:
            self.running = [each for each in self.running if not each.is_finished]
        return step.sampled

    def _make_room(self, request: Request, needed: int, waiting: WaitingQueue, step: Step) -> bool:
        """Make room for a running request at the cost of the last, in the end itself."""
        while not self._blocks.grow(request, needed):
            victim = self._victim()
            self.running.remove(victim)
            step.drop(victim)
            self._blocks.free(victim)
            victim.computed = 0
            victim.under_way = 0
            waiting.put_back(victim)
            self._group_left += 1
            step.preempted.append(victim)
            if victim is request:
                return False
        return True

    def _victim(self) -> Request:
        priorities = self._options.priorities
        if priorities is None:
            return self.running[-1]

        def rank(each: Request) -> tuple[int, float, int]:
            # Arrivals at one time have an order too: two requests that are each other's victims in
            # turn would never end.
            priority = priorities.get(each.arrival.class_name, 0)
            return priority, each.arrival.at, int(each.request_id)

        return max(self.running, key=rank)

    def _admit(self, limits: Limits, waiting: WaitingQueue, step: Step, longest: int) -> None:
        if not self.running:
            self._group_left = min(self._options.static_batch or 0, len(waiting))
        while step.tokens < limits.token_budget and len(self.running) < limits.max_batch_size:
            request = waiting.head
            if request is None or (self._options.static_batch and not self._group_left):
                return
            cached = request.cached(self._blocks.block_tokens)
            tokens = min(request.known - cached, limits.token_budget - step.tokens, longest)
            whole = request.known if self._options.reserve_full_prompt else 0
            if not (
                self._blocks.can_grow(request, whole)
                and self._blocks.grow(request, cached + tokens)
            ):
                return
            self.running.append(waiting.take())
            self._group_left -= 1
            request.computed = cached
            step.add(request, tokens)
