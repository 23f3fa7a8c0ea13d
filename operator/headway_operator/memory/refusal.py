"""What is remembered of an object that the API server did not take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """The API server refused an object as it was last applied.

    Attributes:
        kind: slot of the object.
        applied_hash: of the object as it was refused.
        status: HTTP status of the answer.
        fields: paths of the fields it named.
        resource_version: of the object as it was then; None if there was none.
        retry_at: when the same may be tried again, as Unix time in seconds.
    """

    kind: str
    applied_hash: str
    status: int
    fields: tuple[str, ...]
    resource_version: int | None
    retry_at: float
