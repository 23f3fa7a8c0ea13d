"""Spreads a workload over several client processes, since one cannot read every answer in time."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from types import TracebackType
from typing import Self

from headway_runtime.bench.client import Target, body, offer
from headway_runtime.bench.closed_loop import components
from headway_runtime.bench.outcome import Outcome
from headway_runtime.bench.workload import Request

_SETTLE_S = 0.5
_PREPARED_TOKENS_PER_S = 2e6


class ClientPool:
    """Client processes that are kept for all runs.

    Args:
        processes: how many.
    """

    def __init__(self, processes: int) -> None:
        self._processes = processes
        # Not forked: a copy of an event loop's process is none that works.
        self._pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"))

    def __enter__(self) -> Self:
        """Start the processes."""
        wait = [self._pool.submit(time.sleep, 0.1) for _ in range(self._processes)]
        for each in wait:
            each.result()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the processes."""
        self._pool.shutdown(cancel_futures=True)

    def offer(self, requests: Sequence[Request], target: Target) -> list[Outcome]:
        """Offer requests; returns one outcome a request, in the same order.

        Each process takes every n-th request or program. All have the bodies ready before the first
        is sent.
        """
        parts = _parts(requests, self._processes)
        start_s = time.monotonic() + _SETTLE_S + _preparation_s(requests, self._processes)
        results = [
            each.result()
            for each in [
                self._pool.submit(_offer_part, _relinked(requests, part), target, start_s)
                for part in parts
            ]
        ]
        outcomes: dict[int, Outcome] = {}
        for part, of_part in zip(parts, results, strict=True):
            outcomes.update(zip(part, of_part, strict=True))
        return [outcomes[index] for index in range(len(requests))]


def _parts(requests: Sequence[Request], processes: int) -> list[list[int]]:
    """Indexes of the requests of each process; those that wait for one another are together."""
    parts: list[list[int]] = [[] for _ in range(processes)]
    process_of: dict[int, int] = {}
    for index, first in enumerate(components(requests)):
        process = process_of.setdefault(first, len(process_of) % processes)
        parts[process].append(index)
    return parts


def _relinked(requests: Sequence[Request], part: Sequence[int]) -> list[Request]:
    """The requests of a part, with the places in it of those they are after."""
    place = {index: number for number, index in enumerate(part)}
    return [
        replace(requests[index], after=tuple(place[each] for each in requests[index].after))
        for index in part
    ]


def _preparation_s(requests: Sequence[Request], processes: int) -> float:
    """Time for making the bodies."""
    tokens = sum(each.prompt_tokens for each in requests)
    return tokens / processes / _PREPARED_TOKENS_PER_S


def _offer_part(requests: Sequence[Request], target: Target, start_s: float) -> list[Outcome]:
    bodies = [body(each, target.model) for each in requests]
    return asyncio.run(offer(requests, bodies, target, start_s))
