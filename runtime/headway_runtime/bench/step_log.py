"""A record of every step of the engine: when it began and ended, and what it computed.

It takes some 0.1 microseconds for each running request and step, in all arms alike, and is written
only while the engine is idle.
"""

from __future__ import annotations

import time
from array import array
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

COLUMNS = (
    "serial",  # of the run, see arms.Seating
    "schedule_s",  # entry of schedule(), on the monotonic clock
    "scheduled_s",  # schedule() has returned
    "launched_s",  # entry of get_grammar_bitmask(): execute_model() has returned; 0 if not called
    "update_s",  # entry of update_from_output()
    "prefill_tokens",
    "decodes",
    "decode_context",  # tokens before those that decode, together
    "attention_pairs",  # see scheduling.step_shape
    "tokens",
    "running",
    "waiting",
    "kv_usage",  # share of KV blocks, 0 to 1
    "token_budget",  # in force in this step
    "preemptions",
)
Rows = npt.NDArray[np.float64]
"""A step log: shape (steps, ``len(COLUMNS)``)."""

_AT = {name: index for index, name in enumerate(COLUMNS)}
_MAX_IN_FLIGHT = 16


class StepLog:
    """Appends rows to a file of 64-bit floats.

    Args:
        path: the file; it is emptied.
    """

    def __init__(self, path: Path) -> None:
        path.write_bytes(b"")
        self._path = path
        self._rows = array("d")

    def add(self, row: list[float]) -> None:
        """Keep a row in memory."""
        self._rows.extend(row)

    def flush(self) -> None:
        """Write what is in memory."""
        with self._path.open("ab") as file:
            self._rows.tofile(file)
        del self._rows[:]


def column(rows: Rows, name: str) -> npt.NDArray[np.float64]:
    """One column of a step log."""
    values: npt.NDArray[np.float64] = rows[:, _AT[name]]
    return values


def read_steps(path: Path, serial: int | None = None) -> Rows:
    """Rows of the step log that an engine writes, of one run or of all.

    Raises:
        OSError: there is none.
    """
    values = np.fromfile(path, dtype=np.float64)
    rows = values[: len(values) // len(COLUMNS) * len(COLUMNS)].reshape(-1, len(COLUMNS))
    return rows if serial is None else rows[rows[:, _AT["serial"]] == serial]


class StepTimes:
    """Follows steps through the scheduler's calls; several may be in flight.

    Attributes:
        serial: of the run that is under way.
    """

    def __init__(self, log: StepLog) -> None:
        self.serial = 0
        self._log = log
        self._row: list[float] = []
        self._in_flight: deque[tuple[Any, list[float]]] = deque(maxlen=_MAX_IN_FLIGHT)

    def entered(self) -> None:
        """``schedule()`` is entered."""
        self._row = [0.0] * len(COLUMNS)
        self._row[_AT["serial"]] = self.serial
        self._row[_AT["schedule_s"]] = time.monotonic()

    def decided(self, scheduler: Any, output: Any) -> None:
        """The step is decided, and its tokens are not counted as computed yet."""
        row, requests = self._row, scheduler.requests
        prefill = decodes = context = 0
        pairs = 0.0
        for request_id, tokens in output.num_scheduled_tokens.items():
            request = requests[request_id]
            computed = request.num_computed_tokens
            if tokens == 1 and computed >= request.num_prompt_tokens:
                decodes += 1
                context += computed
            else:
                prefill += tokens
                pairs += tokens * (computed + tokens / 2)
        row[_AT["prefill_tokens"] : _AT["tokens"] + 1] = (
            prefill,
            decodes,
            context,
            pairs,
            output.total_num_scheduled_tokens,
        )
        row[_AT["token_budget"]] = scheduler.max_num_scheduled_tokens
        row[_AT["preemptions"]] = len(output.preempted_req_ids or ())

    def scheduled(self, scheduler: Any, output: Any) -> None:
        """``schedule()`` has returned."""
        row = self._row
        row[_AT["running"]], row[_AT["waiting"]] = scheduler.get_request_counts()
        row[_AT["kv_usage"]] = scheduler.kv_cache_manager.usage
        row[_AT["scheduled_s"]] = time.monotonic()
        self._in_flight.append((output, row))

    def launched(self, output: Any) -> None:
        """The engine has launched the step."""
        now_s = time.monotonic()
        for each, row in reversed(self._in_flight):
            if each is output:
                row[_AT["launched_s"]] = now_s
                return

    def ended(self, output: Any) -> None:
        """The step's output is there."""
        now_s = time.monotonic()
        while self._in_flight:
            each, row = self._in_flight.popleft()
            if each is output:
                row[_AT["update_s"]] = now_s
                # A step of no tokens only tells the worker who has gone.
                if output.total_num_scheduled_tokens:
                    self._log.add(row)
                return

    def idle(self) -> None:
        """The engine has nothing to do."""
        self._log.flush()
