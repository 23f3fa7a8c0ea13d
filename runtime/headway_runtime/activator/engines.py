"""The engines that take requests now."""

from __future__ import annotations

import asyncio


class Engines:
    """Gives each in turn, and lets wait for one."""

    def __init__(self) -> None:
        self._urls: list[str] = []
        self._turn = 0
        self._some = asyncio.Event()

    def are(self, urls: frozenset[str]) -> None:
        """These take requests."""
        self._urls = sorted(urls)
        if self._urls:
            self._some.set()
        else:
            self._some.clear()

    def failed(self, url: str) -> None:
        """This one does not, until it is heard of again."""
        self.are(frozenset(self._urls) - {url})

    def next(self) -> str | None:
        """URL of the one whose turn it is; None where there is none."""
        if not self._urls:
            return None
        self._turn += 1
        return self._urls[self._turn % len(self._urls)]

    async def wait(self) -> str:
        """URL of one, as soon as there is one."""
        while (url := self.next()) is None:
            await self._some.wait()
        return url
