"""What kopf keeps about each object it watches: nothing.

By default kopf copies every object of every event twice to find out what has changed, for kinds of
handlers that this operator does not have: a quarter of its processor time with thousands of pods.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import kopf


class NoDiffBase(kopf.DiffBaseStorage):
    """No object is compared with what it was."""

    def build(
        self,
        *,
        body: kopf.Body,  # noqa: ARG002 - kopf calls by name
        extra_fields: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> kopf.BodyEssence:
        """Nothing of an object matters."""
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> None:  # noqa: ARG002
        """Nothing was stored."""
        return

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Nothing is stored."""


class NoProgress(kopf.ProgressStorage):
    """Handlers of events have no progress: they are called once and never again."""

    def fetch(self, **_: Any) -> None:
        """Nothing was stored."""
        return

    def store(self, **_: Any) -> None:
        """Nothing is stored."""

    def purge(self, **_: Any) -> None:
        """There is nothing to remove."""

    def touch(self, **_: Any) -> None:
        """Objects are not written."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """There is nothing of ours in it."""
        return essence
