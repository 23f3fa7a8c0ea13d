"""Whether an engine ends because it could not download its model from the hub. Pure.

Nothing is imported to find out: which HTTP library the hub's stands on differs between releases.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence

from headway_runtime.preflight.finding import Finding, Problem

_HUB = "huggingface_hub"
_HTTP = frozenset({"httpx", "httpx2", "requests", "urllib3"})
_NOT_IN_CACHE = "LocalEntryNotFoundError"
"""Told where the hub failed, but also where it was not asked."""
_NO_SUCH_FILE = "EntryNotFoundError"
"""The hub answered, and the repository lacks one file, which most are free to lack."""

_UNANSWERED = "no answer"


def hub_failure(chain: Sequence[BaseException]) -> Finding | None:
    """What to tell of an error that came from a request to the hub, None for any other.

    Args:
        chain: the error and those it came from.
    """
    failed = [each for each in chain if _is_of_a_request(each)]
    # Some of the errors of the hub's library are handed about before they are raised.
    if not failed or not any(_passed_the_hub(each) for each in chain):
        return None
    if any(_NO_SUCH_FILE in _names(each) for each in failed):
        return None
    statuses = [found for each in failed if (found := _status(each)) is not None]
    answer = f"HTTP {statuses[0]}" if statuses else _UNANSWERED
    return Finding(Problem.MODEL_DOWNLOAD_FAILED, {"answer": answer})


def _is_of_a_request(error: BaseException) -> bool:
    """A class of an HTTP library, or one that the hub's library derives from it."""
    roots = {_root(each.__module__) for each in type(error).__mro__}
    return not _HTTP.isdisjoint(roots) and _NOT_IN_CACHE not in _names(error)


def _names(error: BaseException) -> set[str]:
    return {each.__name__ for each in type(error).__mro__}


def _passed_the_hub(error: BaseException) -> bool:
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(_root(str(frame.f_globals.get("__name__", ""))) == _HUB for frame in frames)


def _status(error: BaseException) -> int | None:
    status = getattr(getattr(error, "response", None), "status_code", None)
    return status if isinstance(status, int) else None


def _root(module: str) -> str:
    return module.partition(".")[0]
