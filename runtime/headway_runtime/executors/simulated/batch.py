"""What runs, and what of it a step computes."""

from __future__ import annotations

from dataclasses import dataclass

from headway_runtime.executors.simulated.kv_blocks import KvBlocks
from headway_runtime.executors.simulated.request import Request
from headway_runtime.executors.simulated.waiting_queue import WaitingQueue
from headway_runtime.scheduling.view import Limits

Chunk = tuple[Request, int]
"""A request and how many of its tokens a step computes."""


@dataclass(frozen=True)
class Step:
    """What one step computes.

    Attributes:
        chunks: tokens of each request in it.
        preemptions: requests that lost their KV blocks for it.
    """

    chunks: list[Chunk]
    preemptions: int

    @property
    def tokens(self) -> int:
        """Tokens it computes."""
        return sum(tokens for _, tokens in self.chunks)

    @property
    def context_tokens(self) -> int:
        """Tokens that its requests had before."""
        return sum(request.computed for request, _ in self.chunks)


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
        chunks: list[Chunk] = []
        budget, preemptions = limits.token_budget, 0
        while len(chunks) < len(self.running) and budget > 0:
            request = self.running[len(chunks)]
            tokens = min(request.pending, budget)
            preemptions += self._preempt_for(request, tokens, waiting)
            if len(chunks) == len(self.running):
                break
            chunks.append((request, tokens))
            budget -= tokens
        if not preemptions:
            self._admit(limits.max_batch_size, budget, waiting, chunks)
        return Step(chunks, preemptions)

    def finish(self, step: Step) -> list[Request]:
        """Carry the step out. Returns the requests that got a token by it."""
        served = []
        for request, tokens in step.chunks:
            request.computed += tokens
            if not request.pending:
                request.produced += 1
                served.append(request)
        ended = [request for request in served if request.is_finished]
        for request in ended:
            self._blocks.free(request)
        if ended:
            self.running = [each for each in self.running if not each.is_finished]
        return served

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

    def _admit(
        self, max_batch_size: int, budget: int, waiting: WaitingQueue, chunks: list[Chunk]
    ) -> None:
        while budget > 0 and len(self.running) < max_batch_size:
            request = waiting.head
            if request is None:
                return
            tokens = min(request.pending, budget)
            if not self._blocks.grow(request, tokens):
                return
            self.running.append(waiting.take())
            chunks.append((request, tokens))
            budget -= tokens
