"""A logits processor with a fault, as an engine image may have one: some prompts break it.

vLLM calls it in the process that runs the model, before the first token of each request.
"""

from __future__ import annotations

from typing import Any

from vllm.v1.sample.logits_processor import LogitsProcessor

MAGIC_TOKEN = 31_337


class Poisonable(LogitsProcessor):  # type: ignore[misc]
    """Changes nothing, and raises an error when a prompt has the magic token."""

    def __init__(self, *_: Any) -> None:
        """It keeps nothing."""

    def is_argmax_invariant(self) -> bool:
        return True

    def update_state(self, batch_update: Any) -> None:
        for _, _, prompt, _ in batch_update.added if batch_update else ():
            if MAGIC_TOKEN in (prompt or ()):
                raise ZeroDivisionError("a fault that only this prompt shows")

    def apply(self, logits: Any) -> Any:
        return logits
