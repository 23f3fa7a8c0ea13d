"""How the wanted arm reaches the engine, and its word that it is in force."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path

from headway_runtime.bench.arms import APPLIED_FILE, ARM_FILE, Seating

_LOGGER = logging.getLogger("vllm.headway")


class ArmsFile:
    """The engine's side of the run directory.

    Args:
        run_dir: the directory.
        engine_version: vLLM's version, told with every acknowledgement.
        is_async: whether it schedules a step before the one before is done; told likewise.
    """

    def __init__(self, run_dir: Path, engine_version: str, *, is_async: bool) -> None:
        self._wanted = run_dir / ARM_FILE
        self._applied = run_dir / APPLIED_FILE
        self._engine_version = engine_version
        self._is_async = is_async
        self._started_s = int(time.time())

    def wanted(self) -> Seating | None:
        """The arm that is wanted; None when there is none, or none that can be read."""
        try:
            return Seating.from_json(self._wanted.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (KeyError, OSError, TypeError, ValueError):
            # The engine goes on as it is; nobody takes its runs for those of another arm.
            _LOGGER.exception("The wanted arm cannot be read")
            return None

    def applied(self, seating: Seating) -> None:
        """Say that this arm is in force."""
        word = {
            "arm": seating.arm.name,
            "serial": seating.serial,
            "engine_version": self._engine_version,
            "async_scheduling": self._is_async,
            "engine_started_s": self._started_s,
        }
        replace_text(self._applied, json.dumps(word))


def replace_text(path: Path, text: str) -> None:
    """Replace a file's content; a reader sees the old or the new.

    Raises:
        OSError: the directory cannot be written.
    """
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
