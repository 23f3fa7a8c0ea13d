"""How errors are told in the log."""

from __future__ import annotations


def told(error: BaseException) -> str:
    """Type and notes of an error. Never its text: a server's may quote objects and their values."""
    return " ".join([type(error).__name__, *getattr(error, "__notes__", ())])
