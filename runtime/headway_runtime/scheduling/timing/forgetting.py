"""How fast what was offered to an engine is forgotten."""

from __future__ import annotations

from math import exp

MEMORY_S = 15.0
"""Time constant: what happened so long ago counts for 1/e of what happens now."""


def kept(seconds: float) -> float:
    """Share that is left, after so many seconds, of what counted whole; all of it before then."""
    return exp(-seconds / MEMORY_S) if seconds > 0 else 1.0
