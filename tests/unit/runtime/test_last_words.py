"""What an engine leaves as its termination message."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway_runtime.executors.vllm.last_words import LastWords, watch
from headway_runtime.install import install

START = "EngineCore failed to start."
FATAL = "EngineCore encountered a fatal error."
FREE = (
    "Free memory on device cuda:0 (20.1/79.6 GiB) on startup is less than desired GPU memory "
    "utilization (0.9, 71.6 GiB). Decrease GPU memory utilization"
)
ON_CPU = (
    "Available memory on node 0 (9/23 GiB) on kv cache allocation is less than requested memory "
    "for kv (31 GiB)."
)
NO_BLOCKS = "No available memory for the cache blocks. Try increasing `gpu_memory_utilization`"
TOO_LONG = "To serve at least one request with the model's max seq len (4096), (9 GiB KV cache is"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """The termination log of what the logger ``vllm.v1.engine.core`` says."""
    path, logger = tmp_path / "termination-log", logging.getLogger("vllm")
    handler = LastWords(path)
    logger.addHandler(handler)
    yield path
    logger.removeHandler(handler)


def end(error: BaseException, message: str = START) -> None:
    logging.getLogger("vllm.v1.engine.core").error(message, exc_info=error)


@pytest.mark.parametrize(
    ("error", "message", "reason"),
    [
        (ValueError(FREE), START, "EngineOutOfMemory"),
        (ValueError(ON_CPU), "WorkerProc failed to start.", "EngineOutOfMemory"),
        (RuntimeError(f"Worker failed with error '{ON_CPU}'"), START, "EngineOutOfMemory"),
        (RuntimeError("CUDA out of memory. Tried to allocate"), FATAL, "EngineOutOfMemory"),
        (ValueError(NO_BLOCKS), START, "KVCacheTooSmall"),
        (ValueError(TOO_LONG), START, "KVCacheTooSmall"),
    ],
)
def test_an_end_for_want_of_memory_is_told_in_a_word(
    log: Path, error: Exception, message: str, reason: str
) -> None:
    end(error, message)
    assert json.loads(log.read_text()) == {"reason": reason, "captures": {}}


def test_what_an_error_came_from_counts(log: Path) -> None:
    error = RuntimeError("initialization failed")
    error.__cause__ = ValueError(NO_BLOCKS)
    end(error)
    assert json.loads(log.read_text())["reason"] == "KVCacheTooSmall"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("a prompt that says: out of memory"), "WorkerProc hit an exception."),
        (ValueError("something else"), START),
        (OSError("disk full"), FATAL),
    ],
)
def test_nothing_is_said_of_other_ends(log: Path, error: Exception, message: str) -> None:
    end(error, message)
    assert not log.exists()


def test_a_log_that_cannot_be_written_is_no_harm(tmp_path: Path) -> None:
    logger = logging.getLogger("vllm")
    handler = LastWords(tmp_path / "not" / "there")
    logger.addHandler(handler)
    end(ValueError(FREE))
    logger.removeHandler(handler)


def test_watching_twice_is_watching_once() -> None:
    logger = logging.getLogger("vllm")
    before = list(logger.handlers)
    watch()
    watch()
    added = [each for each in logger.handlers if each not in before]
    for each in added:
        logger.removeHandler(each)
    assert len(added) == 1


def test_vllm_finds_it_beside_the_engine(tmp_path: Path) -> None:
    library = install(tmp_path)
    install(tmp_path)
    script = (
        f"import sys; sys.path.insert(0, {str(library)!r}); "
        "from importlib.metadata import entry_points; import logging; "
        "found = [e for e in entry_points(group='vllm.general_plugins') if 'headway' in e.name]; "
        "[e.load()() for e in found]; print(len(found), len(logging.getLogger('vllm').handlers))"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["1", "1"]
