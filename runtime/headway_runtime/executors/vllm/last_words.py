"""Why an engine ends, told to Kubernetes in one word: for want of memory or of its model's files.

vLLM tells it in its log only, far above the end. vLLM calls :func:`watch` in each of its processes
before anything is loaded: it is an entry point of the group ``vllm.general_plugins``.
https://docs.vllm.ai/en/latest/design/plugin_system/
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from headway_runtime.executors.vllm.hub_failure import hub_failure
from headway_runtime.preflight.finding import TERMINATION_LOG, Finding, Problem

ENTRY_POINTS = f"[vllm.general_plugins]\nheadway_last_words = {__name__}:watch\n"
"""``entry_points.txt`` of the distribution that announces it."""

_ENDS = ("EngineCore failed to start", "EngineCore encountered a fatal", "WorkerProc failed to st")
"""How the records begin with which vLLM 0.26 to 0.33 log that they end."""

_PATTERNS = (
    (
        Problem.KV_CACHE_TOO_SMALL,
        re.compile(
            r"No available memory for the cache blocks"
            r"|To serve at least one request with the model's max seq len"
        ),
    ),
    (
        Problem.ENGINE_OUT_OF_MEMORY,
        re.compile(
            r"is less than desired [CG]PU memory utilization"
            r"|is less than requested memory for kv"
            r"|is less than the engine's budget"
            r"|\bout of memory\b",
            re.IGNORECASE,
        ),
    ),
)
_LONGEST_CHAIN = 16


class LastWords(logging.Handler):
    """Looks at what vLLM logs, and writes the termination message of an end it knows.

    Args:
        log: file to write it to.
    """

    def __init__(self, log: Path = TERMINATION_LOG) -> None:
        super().__init__(logging.ERROR)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Look at one record. Nothing of it is kept but words from a fixed list and a number."""
        if record.exc_info and str(record.msg).startswith(_ENDS):
            self.tell(record.exc_info[1])

    def tell(self, error: BaseException | None) -> None:
        """Write what is known of an end by this error; nothing where nothing is."""
        try:
            finding = _finding(list(_chain(error)))
            if finding is not None:
                self._log.write_text(finding.to_json(), encoding="ascii")
        except Exception:  # noqa: BLE001 - an engine must not end for what is said about its end
            return

    def tell_uncaught(self) -> None:
        """Also tell of the error that nobody catches: vLLM's first process ends by it."""
        hook = sys.excepthook

        def tell(
            kind: type[BaseException], error: BaseException, trace: TracebackType | None
        ) -> None:
            self.tell(error)
            hook(kind, error, trace)

        sys.excepthook = tell


def watch() -> None:
    """Look at what this process logs and ends by from now on. A second call changes nothing."""
    logger = logging.getLogger("vllm")
    if not any(isinstance(each, LastWords) for each in logger.handlers):
        words = LastWords()
        logger.addHandler(words)
        words.tell_uncaught()


def _finding(chain: list[BaseException]) -> Finding | None:
    texts = [str(error) for error in chain]
    for problem, pattern in _PATTERNS:
        if any(pattern.search(text) for text in texts):
            return Finding(problem)
    return hub_failure(chain)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those it came from."""
    for _ in range(_LONGEST_CHAIN):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__
