"""How the chunk of a single request is limited in a step: through a hook that vLLM itself has.

Both hooks are asked for every request that vLLM is about to put into a step, and may answer with
fewer tokens; 0 leaves a running request out of the step with its KV blocks. Neither is part of a
public interface: an engine that has none of them is not given chunks. They are set on the scheduler
object for one step, so that steps without limits cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

_LOOKAHEAD = "_reserve_prefill_lookahead"
_BLOCK_SPLIT = "_mamba_block_aligned_split"
_BLOCK_SPLIT_SWITCH = "need_mamba_block_aligned_split"


class ChunkLimits(Protocol):
    """Limits chunks of one scheduler."""

    def set(self, chunks: Mapping[str, int]) -> None:
        """Limit requests by id until :meth:`clear`."""

    def clear(self) -> None:
        """Limit nobody. Harmless without limits."""


def chunk_limits(scheduler: Any) -> ChunkLimits | None:
    """What limits chunks in this scheduler; None if nothing can."""
    if hasattr(scheduler, _LOOKAHEAD):
        return LookaheadHook(scheduler)
    if hasattr(scheduler, _BLOCK_SPLIT) and not getattr(scheduler, _BLOCK_SPLIT_SWITCH, True):
        return BlockSplitHook(scheduler)
    return None


class LookaheadHook:
    """vLLM 0.28 and later: keeps chunks from ending shortly before the end of a prompt.

    That matters to some drafters of tokens only; with others, and without, it changes nothing.
    """

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler

    def set(self, chunks: Mapping[str, int]) -> None:
        """Limit requests by id until :meth:`clear`."""
        limit_of = chunks.get
        keeps_off = getattr(self._scheduler, "num_prefill_lookahead", 1) > 1
        stock: Callable[..., int] | None = None
        if keeps_off:
            stock = getattr(type(self._scheduler), _LOOKAHEAD).__get__(self._scheduler)

        def limited(request: Any, num_computed_tokens: int, num_new_tokens: int) -> int:
            tokens = num_new_tokens
            if stock is not None:
                tokens = stock(request, num_computed_tokens, num_new_tokens)
            limit = limit_of(request.request_id)
            return tokens if limit is None or limit > tokens else limit

        setattr(self._scheduler, _LOOKAHEAD, limited)

    def clear(self) -> None:
        """Limit nobody."""
        self._scheduler.__dict__.pop(_LOOKAHEAD, None)


class BlockSplitHook:
    """vLLM 0.26 and 0.27: ends chunks where the state of a hybrid model can be kept.

    It is asked only while a switch says so, which is off for all models that are not hybrid, and
    those are not planned.
    """

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler

    def set(self, chunks: Mapping[str, int]) -> None:
        """Limit requests by id until :meth:`clear`."""
        limit_of = chunks.get

        def limited(request: Any, num_new_tokens: int, *_: Any, **__: Any) -> int:
            limit = limit_of(request.request_id)
            return num_new_tokens if limit is None or limit > num_new_tokens else limit

        setattr(self._scheduler, _BLOCK_SPLIT, limited)
        setattr(self._scheduler, _BLOCK_SPLIT_SWITCH, True)

    def clear(self) -> None:
        """Limit nobody."""
        if self._scheduler.__dict__.pop(_BLOCK_SPLIT, None) is not None:
            setattr(self._scheduler, _BLOCK_SPLIT_SWITCH, False)
