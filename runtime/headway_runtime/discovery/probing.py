"""Asks an engine whether it takes requests."""

from __future__ import annotations

import asyncio

import aiohttp

from headway_runtime.discovery.membership import Answer

TIMEOUT_SECONDS = 10.0
"""As long as the pod's own readiness probe waits."""

_OK = 200


async def ask(session: aiohttp.ClientSession, urls: tuple[str, ...]) -> Answer:
    """Ask all URLs of one engine; it takes requests when every one says 200.

    Those are vLLM's own health, and the sidecar's readiness, which ends when the pod is being
    stopped: long before its address leaves DNS.
    """
    answers = await asyncio.gather(*(_ask_one(session, url) for url in urls))
    worst = (Answer.NO, Answer.SILENCE, Answer.YES)
    return next(answer for answer in worst if answer in answers)


async def _ask_one(session: aiohttp.ClientSession, url: str) -> Answer:
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
    try:
        async with session.get(url, timeout=timeout) as response:
            return Answer.YES if response.status == _OK else Answer.NO
    except TimeoutError:
        return Answer.SILENCE
    except (aiohttp.ClientError, OSError):
        return Answer.NO
