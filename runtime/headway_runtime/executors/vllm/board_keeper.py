"""Keeps those who let requests in informed of how long they would wait."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from headway_runtime.policy import Policy, WhenUnmet
from headway_runtime.scheduling.admission.refusal import Board

_LOGGER = logging.getLogger("vllm.headway")

PERIOD_S = 0.05
"""The board is renewed this often while the engine works: what was let in meanwhile is counted by
those who did."""


class Writer(Protocol):
    """Where boards are written."""

    def write(self, board: Board) -> None:
        """Replace the board."""
        ...


class BoardKeeper:
    """Writes boards, where the policy has anybody refused at all.

    Args:
        writer: where to.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer: Writer | None = writer
        self._is_asked = False
        self._written_s = float("-inf")

    def adopt(self, policy: Policy | None) -> None:
        """Follow another policy."""
        self._is_asked = policy is not None and any(
            each.when_unmet is WhenUnmet.SHED or each.max_queued is not None
            for each in policy.classes
        )
        self._written_s = float("-inf")

    def renew(self, now_s: float, board: Callable[[], Board], *, is_idle: bool) -> None:
        """Write a board if it is time, or if it is the last one before the engine is idle.

        Args:
            now_s: now, in seconds of the monotonic clock.
            board: tells what is to be written.
            is_idle: nothing runs or waits.
        """
        if self._writer is None or not self._is_asked:
            return
        if now_s - self._written_s < PERIOD_S and not is_idle:
            return
        self._written_s = now_s
        try:
            self._writer.write(board())
        except Exception:
            # Nobody is refused by an old board for long.
            _LOGGER.exception("Headway does not tell any more how long requests would wait")
            self._writer = None
