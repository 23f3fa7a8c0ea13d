"""KV blocks of an engine."""

from __future__ import annotations

from headway_runtime.executors.simulated.request import Request


class KvBlocks:
    """Counts the blocks that requests hold; which ones does not matter here.

    Blocks that the prefix cache saves are counted as if each request had its own.

    Args:
        count: blocks there are.
        block_tokens: tokens in each.
    """

    def __init__(self, count: int, block_tokens: int = 16) -> None:
        self._count = count
        self.block_tokens = block_tokens
        self._used = 0

    @property
    def usage(self) -> float:
        """Share of blocks in use."""
        return self._used / self._count

    def hold(self, tokens: int) -> bool:
        """Whether there are enough for so many tokens at all."""
        return self._blocks(tokens) <= self._count

    def can_grow(self, request: Request, tokens: int) -> bool:
        """Whether a request could get what it needs for so many tokens."""
        return self._used + self._blocks(tokens - request.room) <= self._count

    def grow(self, request: Request, tokens: int) -> bool:
        """Give a request what it needs for so many tokens; False, and nothing, if there is not."""
        if not self.can_grow(request, tokens):
            return False
        missing = self._blocks(tokens - request.room)
        self._used += missing
        request.room += missing * self.block_tokens
        return True

    def free(self, request: Request) -> None:
        """Take back everything from a request."""
        self._used -= self._blocks(request.room)
        request.room = 0

    def _blocks(self, tokens: int) -> int:
        return max(0, -(-tokens // self.block_tokens))
