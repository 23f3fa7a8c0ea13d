"""How refusals are counted for the sidecar."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway_runtime.exchange.process_files import file_name
from headway_runtime.exchange.refusal_counts import (
    KIND,
    MAX_COUNTS,
    RefusalCounts,
    read_counts,
    read_refused_work,
)
from headway_runtime.scheduling.timing.forgetting import MEMORY_S

NOW_S = 1_800_000_000.0
FULL, UNMET = "QueueFull", "ObjectiveUnmet"
NO_PID = 2**22 + 1
"""No process has it: it is above the most that Linux allows."""


@pytest.fixture
def counts(tmp_path: Path) -> Iterator[RefusalCounts]:
    made = RefusalCounts(tmp_path)
    yield made
    made.close()


def test_refusals_are_counted_by_class_and_reason(tmp_path: Path, counts: RefusalCounts) -> None:
    assert read_counts(tmp_path) == {}
    for name, reason in (("chat", FULL), ("chat", UNMET), ("chat", FULL), ("batch", FULL)):
        counts.refused(name, reason)
    assert read_counts(tmp_path) == {("chat", FULL): 2, ("chat", UNMET): 1, ("batch", FULL): 1}


def test_processes_are_summed(tmp_path: Path, counts: RefusalCounts) -> None:
    counts.refused("chat", FULL)
    own = tmp_path / file_name(KIND, os.getpid())
    (tmp_path / file_name(KIND, 1)).write_bytes(own.read_bytes())
    assert read_counts(tmp_path) == {("chat", FULL): 2}


def test_a_process_that_starts_counts_from_0(tmp_path: Path, counts: RefusalCounts) -> None:
    counts.refused("chat", FULL)
    again = RefusalCounts(tmp_path)
    assert read_counts(tmp_path) == {}
    again.close()


def test_files_of_processes_that_are_gone_are_removed(tmp_path: Path) -> None:
    gone, other = tmp_path / file_name(KIND, NO_PID), tmp_path / "door-x.bin"
    gone.touch()
    other.touch()
    RefusalCounts(tmp_path).close()
    assert not gone.exists()
    assert other.exists()


@pytest.mark.parametrize("content", [b"", b"foreign" * 2000])
def test_a_file_that_cannot_be_read_counts_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / file_name(KIND, 1)).write_bytes(content)
    (tmp_path / "door-7.bin").mkdir()
    assert read_counts(tmp_path) == {}


def test_when_there_are_too_many_what_has_not_counted_for_longest_goes(
    tmp_path: Path, counts: RefusalCounts
) -> None:
    for number in range(MAX_COUNTS):
        counts.refused(f"class-{number}", FULL)
    counts.refused("class-0", FULL)
    counts.refused("new", FULL)
    found = read_counts(tmp_path)
    assert len(found) == MAX_COUNTS
    assert found["class-0", FULL] == 2
    assert found["new", FULL] == 1
    assert ("class-1", FULL) not in found


def test_work_that_was_refused_is_forgotten_as_what_engines_were_offered(
    tmp_path: Path, counts: RefusalCounts
) -> None:
    assert read_refused_work(tmp_path, NOW_S) == 0.0
    for second in range(300):
        counts.refused("chat", UNMET, 0.5, NOW_S + second)
    # Half an engine-second a second.
    assert read_refused_work(tmp_path, NOW_S + 300) == pytest.approx(0.5, rel=0.05)
    later = read_refused_work(tmp_path, NOW_S + 300 + MEMORY_S)
    assert later == pytest.approx(0.5 / math.e, rel=0.05)
    assert read_refused_work(tmp_path, NOW_S + 3600) < 1e-9


def test_a_clock_that_was_set_back_refuses_nothing_twice(
    tmp_path: Path, counts: RefusalCounts
) -> None:
    counts.refused("chat", UNMET, 1.5, NOW_S)
    counts.refused("chat", UNMET, 1.5, NOW_S - 5000)
    assert read_refused_work(tmp_path, NOW_S - 5000) == pytest.approx(3.0 / MEMORY_S)
