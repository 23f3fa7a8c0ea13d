"""Token ids of prompts."""

from __future__ import annotations

import numpy as np

from headway_runtime.bench.traces import PREFIX_BLOCK_TOKENS
from headway_runtime.bench.workload import Request

FIRST_TOKEN_ID = 1_000
LAST_TOKEN_ID = 40_000
"""Ids are drawn from this range: no special tokens, and in every vocabulary of today's models."""


def prompt_token_ids(request: Request) -> list[int]:
    """Tokens of a request's prompt: equal requests give equal ones, equal prefixes equal ones."""
    shared = [_draw((1, block), PREFIX_BLOCK_TOKENS) for block in request.prefix_blocks]
    shared_tokens = PREFIX_BLOCK_TOKENS * len(shared)
    own = _draw((0, request.tokens_seed), max(0, request.prompt_tokens - shared_tokens))
    ids: list[int] = np.concatenate([*shared, own])[: request.prompt_tokens].tolist()
    return ids


def _draw(seed: tuple[int, int], tokens: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.random.default_rng(seed).integers(
        FIRST_TOKEN_ID, LAST_TOKEN_ID, size=tokens, dtype=np.int64
    )
