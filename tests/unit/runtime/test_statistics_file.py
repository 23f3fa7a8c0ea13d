"""The statistics that engine and sidecar share."""

from __future__ import annotations

import errno
import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.exchange import statistics_file, statistics_record
from headway_runtime.exchange.block import TornBlockError
from headway_runtime.exchange.statistics_file import StatisticsFileError, StatisticsWriter
from headway_runtime.exchange.statistics_record import (
    FORMAT_VERSION,
    NOT_TOLD,
    EngineState,
    Load,
    pack_header,
    pack_load,
    ppm,
    unpack_header,
    unpack_load,
)
from headway_runtime.exchange.step_record import (
    RECORD_BYTES,
    StepRecord,
    pack_record,
    unpack_record,
)
from tests.unit.runtime.blocks import HEADER, flip
from tests.unit.runtime.engines import BLANK

_BYTES = ("decision", "breaker_open")
_WORDS = (
    "planned_token_budget", "planned_max_batch", "moved_requests", "token_budget", "max_batch",
    "scheduled_tokens", "running", "waiting", "kv_usage_ppm",
)  # fmt: skip


def largest(name: str) -> int:
    return 2**8 - 1 if name in _BYTES else 2**32 - 1 if name in _WORDS else 2**64 - 1


records = st.builds(
    StepRecord, **{f.name: st.integers(0, largest(f.name)) for f in fields(StepRecord)}
)


@pytest.fixture
def writer(tmp_path: Path) -> Any:
    made = StatisticsWriter(tmp_path / statistics_file.file_name(0), HEADER)
    yield made
    made.close()


@pytest.fixture
def path(tmp_path: Path) -> Any:
    return tmp_path / statistics_file.file_name(0)


def write_steps(writer: StatisticsWriter, first: int, last: int) -> None:
    for step in range(first, last + 1):
        writer.append(replace(BLANK, step=step))
        writer.write_load(Load(wall_time_ns=step, steps=step, running=1, waiting=0))


@given(records)
def test_a_record_comes_back(record: Any) -> None:
    assert unpack_record(pack_record(record)) == record


@given(records, st.data())
def test_a_changed_record_is_torn(record: Any, data: st.DataObject) -> None:
    block = pack_record(record)
    with pytest.raises(TornBlockError):
        unpack_record(flip(block, data.draw(st.integers(0, len(block) * 8 - 1))))


@given(records, records, st.data())
def test_a_record_half_written_over_another_is_torn_or_one_of_them(
    old: Any, new: Any, data: st.DataObject
) -> None:
    before, after = pack_record(old), pack_record(new)
    torn = after[: (cut := data.draw(st.integers(0, len(after))))] + before[cut:]
    try:
        assert unpack_record(torn) in (old, new)
    except TornBlockError:
        assert torn not in (before, after)


def test_an_unwritten_block_is_torn() -> None:
    with pytest.raises(TornBlockError):
        unpack_record(bytes(len(pack_record(BLANK))))


def test_header_and_load_come_back() -> None:
    load = Load(wall_time_ns=1, steps=2, running=3, waiting=4)
    stock = replace(HEADER, state=int(EngineState.STOCK), stock_reason="HybridModel")
    assert (unpack_header(pack_header(stock)), unpack_load(pack_load(load))) == (stock, load)


loads = st.builds(
    Load, *(st.integers(0, 2 ** (64 if "Q" in kind else 32) - 1) for kind in "QQIIIIQII")
)


@given(loads)
def test_a_load_comes_back(load: Load) -> None:
    assert unpack_load(pack_load(load)) == load


@pytest.mark.parametrize(("ratio", "told"), [(0.0, 0), (0.25, 250_000), (1e9, NOT_TOLD - 1)])
def test_a_ratio_is_told_in_parts_per_million_as_far_as_there_is_room(
    ratio: float, told: int
) -> None:
    assert ppm(ratio) == told


def test_a_ratio_that_nobody_knows_is_not_told() -> None:
    load = Load(wall_time_ns=1, steps=2, running=3, waiting=4)
    assert (load.token_load_ppm, load.step_overhead_ppm) == (NOT_TOLD, NOT_TOLD)


@pytest.mark.parametrize("version", [FORMAT_VERSION - 1, FORMAT_VERSION + 1])
def test_a_file_of_another_release_is_refused(
    writer: Any, path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    monkeypatch.setattr(statistics_record, "FORMAT_VERSION", version)
    writer.write_header(HEADER)
    monkeypatch.undo()
    with pytest.raises(StatisticsFileError, match="of another format"):
        statistics_file.read(path, 1)


def test_texts_too_long_for_the_header_are_cut() -> None:
    long = replace(HEADER, stock_reason="x" * 500, engine_version="y" * 500)
    read = unpack_header(pack_header(long))
    assert (set(read.stock_reason), set(read.engine_version)) == ({"x"}, {"y"})


@pytest.mark.usefixtures("writer")
def test_a_fresh_file_says_who_writes_it_and_holds_no_step(path: Path) -> None:
    found = statistics_file.read(path, 10)
    assert (found.header, found.records, found.latest) == (HEADER, (), None)


def test_the_newest_records_are_read_oldest_first(writer: Any, path: Path) -> None:
    write_steps(writer, 1, 5)
    found = statistics_file.read(path, 3)
    assert [record.step for record in found.records] == [3, 4, 5]
    assert found.latest.step == 5


def test_the_ring_keeps_as_many_as_it_has_slots(writer: Any, path: Path) -> None:
    write_steps(writer, 1, 21)
    found = statistics_file.read(path, 100)
    assert [record.step for record in found.records] == list(range(14, 22))


def test_records_that_the_writer_has_replaced_meanwhile_are_left_out(
    writer: Any, path: Path
) -> None:
    write_steps(writer, 1, 8)
    # The load block still says 8 while the writer is already at step 10.
    for step in (9, 10):
        writer.append(replace(BLANK, step=step))
    assert [record.step for record in statistics_file.read(path, 8).records] == [3, 4, 5, 6, 7, 8]


def test_a_torn_record_is_left_out(writer: Any, path: Path) -> None:
    write_steps(writer, 1, 3)
    content = bytearray(path.read_bytes())
    content[statistics_file._RING_OFFSET + 2 * RECORD_BYTES + 5] ^= 1
    path.write_bytes(content)
    assert [record.step for record in statistics_file.read(path, 3).records] == [1, 3]


@pytest.mark.parametrize("content", [b"", b"\0" * 4, b"HEADWAYS", b"\0" * 5000, os.urandom(300)])
def test_a_foreign_file_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StatisticsFileError):
        statistics_file.read(path, 1)


def test_a_restarted_engine_replaces_the_file(writer: Any, path: Path) -> None:
    write_steps(writer, 1, 3)
    StatisticsWriter(path, replace(HEADER, pid=8)).close()
    found = statistics_file.read(path, 3)
    assert (found.header.pid, found.records) == (8, ())


@pytest.mark.usefixtures("writer")
def test_the_file_has_all_its_pages_from_the_start(path: Path) -> None:
    # A write to one that a full volume cannot give ends the process.
    status = path.stat()
    assert status.st_blocks * 512 >= status.st_size > HEADER.slots * RECORD_BYTES


def test_a_volume_that_is_full_is_an_error_and_leaves_nothing_behind(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="no space left"):
        StatisticsWriter(path, HEADER)
    assert list(path.parent.iterdir()) == []


def test_files_of_all_ranks_are_found(tmp_path: Path) -> None:
    for rank in (1, 0):
        StatisticsWriter(tmp_path / statistics_file.file_name(rank), HEADER).close()
    (tmp_path / "policy").write_bytes(b"")
    names = [each.name for each in statistics_file.find_files(tmp_path)]
    assert names == ["engine-0.statistics", "engine-1.statistics"]


def test_a_process_is_told_from_one_that_is_gone() -> None:
    started = statistics_file.process_started_ticks(os.getpid())
    assert started is not None
    assert started == statistics_file.process_started_ticks(os.getpid())
    assert statistics_file.process_started_ticks(2**31 - 1) is None
