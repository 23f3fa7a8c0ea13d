"""Counting what was written to the API server, from its audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


def writes_since(log: Path, offset: int, user: str) -> list[str]:
    """Writes of a user after a position of the log, its Lease apart, as ``verb resource name``."""
    return [
        f"{event['verb']} {reference(event).get('resource')} {reference(event).get('name', '')}"
        for event in _events(log, offset)
        if event["user"]["username"] == user
        and event["verb"] in WRITES
        and reference(event).get("resource") != "leases"
    ]


def lease_writes_since(log: Path, offset: int, user: str) -> int:
    """Renewals of a user's Lease: proof that the log is written and the user is alive."""
    return sum(
        1
        for event in _events(log, offset)
        if event["user"]["username"] == user
        and event["verb"] in WRITES
        and reference(event).get("resource") == "leases"
    )


def reference(event: dict[str, Any]) -> dict[str, Any]:
    """The object an event is about; some have none."""
    return dict(event.get("objectRef") or {})


def _events(log: Path, offset: int) -> Iterator[dict[str, Any]]:
    with log.open() as lines:
        lines.seek(offset)
        for line in lines:
            if not line.endswith("\n"):
                return  # It is just being written.
            event = json.loads(line)
            if event.get("stage") == "ResponseComplete":
                yield event
