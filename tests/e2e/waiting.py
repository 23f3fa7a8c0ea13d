"""Waiting until something holds, and trying again what a busy machine may refuse for a moment."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

_Seen = TypeVar("_Seen")


def polling(read: Callable[[], _Seen], timeout_s: float, period_s: float = 0.25) -> Iterator[_Seen]:
    """Yield what ``read()`` returns again and again until the time is over."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        yield read()
        time.sleep(period_s)


def wait_until(
    read: Callable[[], _Seen],
    holds: Callable[[_Seen], object],
    timeout_s: float,
    what: str,
    period_s: float = 0.25,
) -> _Seen:
    """Read again and again until it holds of what was read, which is returned.

    Args:
        read: reads it.
        holds: whether that is what is waited for.
        timeout_s: for how long.
        what: what is waited for, in a few words.
        period_s: time between two looks.

    Raises:
        TimeoutError: it never did; says what was there instead.
    """
    seen: object = None
    for found in polling(read, timeout_s, period_s):
        if holds(found):
            return found
        seen = found
    raise TimeoutError(f"{what}: not in {timeout_s:.0f} s, but {seen}")


async def until(lacking: Callable[[], str], timeout_s: float, period_s: float = 1.0) -> None:
    """Wait, while loads run on, until nothing is lacking any more.

    Args:
        lacking: says what is; empty when nothing is. Called in another thread.
        timeout_s: for how long.
        period_s: time between two calls.

    Raises:
        TimeoutError: something was lacking all the time; says what.
    """
    deadline = time.monotonic() + timeout_s
    while text := await asyncio.to_thread(lacking):
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {timeout_s:.0f} s still: {text}")
        await asyncio.sleep(period_s)


def patiently(attempt: Callable[[], _Seen], tries: int = 3, pause_s: float = 1.0) -> _Seen:
    """Ask over the network, and again where no answer comes, with growing pauses.

    On a busy machine the way to a pod may be closed for a moment. The last failure is raised.
    """
    for number in range(1, tries):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return attempt()
        time.sleep(number * pause_s)
    return attempt()
