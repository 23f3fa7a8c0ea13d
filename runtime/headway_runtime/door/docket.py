"""What the door knows of requests that may have killed the engine, and who of them is tried."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from headway_runtime.exchange import suspects_file
from headway_runtime.exchange.fingerprint import Fingerprints
from headway_runtime.exchange.suspects_file import read_told
from headway_runtime.exchange.trial_lock import TrialLock
from headway_runtime.scheduling.quarantine.suspects import Standing, Suspect, Suspects, standing

LOOK_PERIOD_S = 1.0
"""Who is suspected is read so often. It changes when an engine starts, and when one is cleared."""

PATIENCE_S = 30.0
MOST_HELD = 64
"""For so long a suspect waits for its trial, and so many do in each process; others are to come
again."""

ASK_AGAIN_S = 0.05
"""While a suspect of another process is tried, it is asked so often whether that has ended."""


class Held(NamedTuple):
    """What is held against a request.

    Attributes:
        fingerprint: of the request.
        standing: how it is dealt with.
        suspect: what is known of it; None if nothing.
        left_s: for so much longer it is refused, if it is.
    """

    fingerprint: bytes
    standing: Standing = Standing.FREE
    suspect: Suspect | None = None
    left_s: float = 0.0


@dataclass
class Docket:
    """Who is suspected.

    Attributes:
        prints: makes fingerprints.
        path: the engine's file.
        clock: tells the time, in seconds since the epoch.
    """

    prints: Fingerprints
    path: Path
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self._suspects: Suspects = {}
        self._looked_s = float("-inf")

    @classmethod
    def of_run(cls, run_dir: Path, rank: int) -> Docket:
        """That of a run directory.

        Raises:
            OSError: the directory cannot be used.
            ValueError: what is in the seal's file is none.
        """
        return cls(Fingerprints.of_run(run_dir), run_dir / suspects_file.file_name(rank))

    def of(self, raw: bytes, document: Mapping[str, Any]) -> Held:
        """What is held against a request with this body."""
        now_s = self.clock()
        if abs(now_s - self._looked_s) >= LOOK_PERIOD_S:
            self._looked_s = now_s
            self._suspects = read_told(self.path).suspects
        fingerprint = self.prints.of(raw, document)
        suspect = self._suspects.get(fingerprint)
        if suspect is None:
            return Held(fingerprint)
        left_s = suspect.free_s - now_s
        return Held(fingerprint, standing(suspect, now_s), suspect, left_s)


class Trials:
    """Lets one suspect in at a time, of all that come to any process of this engine.

    Args:
        of_all: is had by the process whose suspect is tried; None where there is no other one.
        patience_s: for so long a suspect waits.
    """

    def __init__(self, of_all: TrialLock | None = None, patience_s: float = PATIENCE_S) -> None:
        self._of_all = of_all
        self._patience_s = patience_s
        self._one = asyncio.Lock()
        self._waiting = 0

    async def begin(self) -> bool:
        """Wait until no other suspect is under way; whether that came about."""
        if self._waiting >= MOST_HELD:
            return False
        self._waiting += 1
        try:
            await asyncio.wait_for(self._take(), self._patience_s)
        except asyncio.TimeoutError:
            return False
        finally:
            self._waiting -= 1
        return True

    def end(self) -> None:
        """The one that was let in has its answer, or nobody waits for it any more."""
        if self._of_all is not None:
            self._of_all.give_back()
        self._one.release()

    async def _take(self) -> None:
        await self._one.acquire()
        is_taken = False
        try:
            while not (is_taken := self._of_all is None or self._of_all.take()):  # noqa: ASYNC110
                await asyncio.sleep(ASK_AGAIN_S)
        finally:
            if not is_taken:
                self._one.release()
