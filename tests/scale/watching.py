"""Watches of the API server, through ``kubectl proxy``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp

_RETRY_S = 0.5
_LONGEST_OBJECT_BYTES = 2**20


@dataclass(frozen=True)
class Event:
    """What happened to an object.

    Attributes:
        deleted: whether it is gone.
        body: the object.
    """

    deleted: bool
    body: dict[str, Any]

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.body["metadata"]["name"])


async def watch(url: str, selector: str = "") -> AsyncIterator[Event]:
    """All objects of a collection as they are, then every change, without an end.

    After a lost connection everything comes again; deletions meanwhile are missed.
    """
    async with aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=None), read_bufsize=_LONGEST_OBJECT_BYTES
    ) as session:
        parameters = {"watch": "1", "labelSelector": selector}
        while True:
            try:
                async with session.get(url, params=parameters) as answer:
                    answer.raise_for_status()
                    async for line in answer.content:
                        found = json.loads(line)
                        if found["type"] in {"ADDED", "MODIFIED", "DELETED"}:
                            yield Event(found["type"] == "DELETED", found["object"])
            except (aiohttp.ClientError, OSError):
                pass
            await asyncio.sleep(_RETRY_S)
