"""What runs, and what of it a step computes."""

from __future__ import annotations

from dataclasses import dataclass, field

from headway_runtime.executors.simulated.kv_blocks import KvBlocks
from headway_runtime.executors.simulated.request import Request
from headway_runtime.executors.simulated.waiting_queue import WaitingQueue
from headway_runtime.scheduling.view import Limits

Chunk = tuple[Request, int]
"""A request and how many of its tokens a step computes."""


@dataclass
class Step:
    """What one step computes.

    Attributes:
        chunks: tokens of each request in it.
        tokens: all of them.
        context_tokens: tokens that its requests had before.
        preemptions: requests that lost their KV blocks for it.
    """

    chunks: list[Chunk] = field(default_factory=list)
    tokens: int = 0
    context_tokens: int = 0
    preemptions: int = 0

    def add(self, request: Request, tokens: int) -> None:
        """Compute these tokens, too."""
        self.chunks.append((request, tokens))
        self.tokens += tokens
        self.context_tokens += request.computed


class Batch:
    """Running requests in the order of their admission.

    Args:
        blocks: KV blocks they share.
    """

    def __init__(self, blocks: KvBlocks) -> None:
        self.running: list[Request] = []
        self._blocks = blocks

    def fill(self, limits: Limits, waiting: WaitingQueue) -> Step:
        """Choose what the next step computes: running requests first, then waiting ones."""
        step = Step()
        budget = limits.token_budget
        while len(step.chunks) < len(self.running) and step.tokens < budget:
            request = self.running[len(step.chunks)]
            tokens = min(request.known - request.computed, budget - step.tokens)
            if request.computed + tokens > request.room:
                step.preemptions += self._preempt_for(request, tokens, waiting)
                if not request.room:
                    break
            step.add(request, tokens)
        if not step.preemptions:
            self._admit(limits, waiting, step)
        return step

    def finish(self, step: Step) -> list[Request]:
        """Carry the step out.

        Returns:
            Requests that got their first token by it, or their last.
        """
        told = []
        for request, tokens in step.chunks:
            request.computed += tokens
            if request.computed == request.known:
                request.known += 1
                if request.first_token_at is None or request.known >= request.total:
                    told.append(request)
        ended = [request for request in told if request.is_finished]
        for request in ended:
            self._blocks.free(request)
        if ended:
            self.running = [each for each in self.running if not each.is_finished]
        return told

    def _preempt_for(self, request: Request, tokens: int, waiting: WaitingQueue) -> int:
        """Make room for a running request at the cost of the last, in the end itself."""
        preempted = 0
        while not self._blocks.grow(request, request.computed + tokens):
            victim = self.running.pop()
            self._blocks.free(victim)
            victim.computed = 0
            waiting.put_back(victim)
            preempted += 1
            if victim is request:
                break
        return preempted

    def _admit(self, limits: Limits, waiting: WaitingQueue, step: Step) -> None:
        while step.tokens < limits.token_budget and len(self.running) < limits.max_batch_size:
            request = waiting.head
            if request is None:
                return
            tokens = min(request.known, limits.token_budget - step.tokens)
            if not self._blocks.grow(request, tokens):
                return
            self.running.append(waiting.take())
            step.add(request, tokens)
