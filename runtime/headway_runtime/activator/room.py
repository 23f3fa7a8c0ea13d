"""Room for requests that are held: bounded in number, and in bytes of all their bodies. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass


class NoRoomError(Exception):
    """Nothing more can be held; the text is the bound that is reached."""


@dataclass
class Place:
    """What one held request takes up.

    Attributes:
        room: where it is.
        body: what was read of its body.
        is_taken: it has not been given back.
    """

    room: Room
    body: bytearray
    is_taken: bool = True

    def add(self, part: bytes) -> None:
        """Keep more of the body.

        Raises:
            NoRoomError: there is no room for it.
        """
        self.room.take_bytes(len(part))
        self.body += part

    def give_back(self) -> None:
        """Somebody else may have it; the body is not there any more."""
        if self.is_taken:
            self.is_taken = False
            self.room.requests -= 1
            self.room.body_bytes -= len(self.body)
            self.body.clear()


class Room:
    """Keeps account.

    Args:
        requests: most requests at once.
        body_bytes: most bytes of all their bodies together.
    """

    def __init__(self, requests: int, body_bytes: int) -> None:
        self._most_requests = requests
        self._most_bytes = body_bytes
        self.requests = 0
        self.body_bytes = 0

    @contextlib.contextmanager
    def place(self) -> Iterator[Place]:
        """A place for one request, given back at the end.

        Raises:
            NoRoomError: as many are held as may be.
        """
        if self.requests >= self._most_requests:
            raise NoRoomError(f"{self._most_requests} requests are held, which is the most")
        place = Place(self, bytearray())
        self.requests += 1
        try:
            yield place
        finally:
            place.give_back()

    def take_bytes(self, count: int) -> None:
        """Take up room for bytes.

        Raises:
            NoRoomError: there is none.
        """
        if self.body_bytes + count > self._most_bytes:
            raise NoRoomError(f"held requests may have {self._most_bytes} bytes together")
        self.body_bytes += count
