"""vllm-router's list of workers, through its HTTP interface.

https://github.com/vllm-project/router: ``/list_workers``, ``/add_worker``, ``/remove_worker``.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

import aiohttp

from headway_runtime.discovery.membership import Changes

_TIMEOUT = aiohttp.ClientTimeout(total=5)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RouterClient:
    """Reads and changes the list.

    Attributes:
        session: to ask with.
        url: of the router.
    """

    session: aiohttp.ClientSession
    url: str

    async def workers(self) -> frozenset[str] | None:
        """URLs of the workers it has; None while it does not answer."""
        try:
            async with self.session.get(f"{self.url}/list_workers", timeout=_TIMEOUT) as response:
                response.raise_for_status()
                body = await response.json()
                return frozenset(str(url) for url in body["urls"])
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError, KeyError, TypeError):
            return None

    async def apply(self, changes: Changes) -> None:
        """Make the changes; what fails is tried again with the next ones."""
        calls = [
            *(self._call("remove_worker", url) for url in changes.removed),
            *(self._call("add_worker", url) for url in changes.added),
        ]
        await asyncio.gather(*calls)

    async def _call(self, action: str, worker: str) -> None:
        try:
            async with self.session.post(
                f"{self.url}/{action}", params={"url": worker}, timeout=_TIMEOUT
            ) as response:
                logger.info("%s %s: %d", action, worker, response.status)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            logger.warning("%s %s: %s", action, worker, type(error).__name__)
