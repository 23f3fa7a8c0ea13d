"""How an engine schedules by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class EngineOptions:
    """Settings that an engine is started with; the defaults are vLLM's.

    Attributes:
        priorities: by class name, smaller runs earlier, as with vLLM's priority policy; None keeps
            the order of arrival. Classes that it does not name have priority 0.
        long_prefill_tokens: most tokens of one prompt in a step while other requests are there; 0
            for no such limit.
        static_batch: requests of a batch that is formed when the one before has ended, as engines
            without continuous batching do; None for continuous batching.
        reserve_full_prompt: whether a request is admitted only if all its tokens fit into free KV
            blocks, not only its first chunk.
    """

    priorities: Mapping[str, int] | None = None
    long_prefill_tokens: int = 0
    static_batch: int | None = None
    reserve_full_prompt: bool = True
