"""The histories of requests that engine and sidecar share."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.exchange import history_file
from headway_runtime.exchange.block import TornBlockError
from headway_runtime.exchange.history_file import (
    Header,
    Histories,
    HistoryFileError,
    HistoryWriter,
    file_name,
    find_files,
)
from headway_runtime.exchange.history_record import (
    ID_BYTES,
    NAME_BYTES,
    RECORD_BYTES,
    pack_history,
    unpack_history,
    unpack_key,
)
from headway_runtime.scheduling.history.lifecycle import State
from headway_runtime.scheduling.history.summary import RequestSummary, Yielded
from tests.unit.runtime.blocks import flip

SMALL = Header(under_way=2, ended=4)
TOLD = RequestSummary("r", "chat", "somebody", arrived_ns=5, ended_ns=9, state=State.FINISHED)

names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,10}[a-z0-9])?", fullmatch=True)
counts = st.integers(0, 2**32 - 1)
numbers = st.integers(0, 2**64 - 1)
COUNTED = {
    "ttft_ms", "tpot_ms", "prompt_tokens", "cached_tokens", "output_tokens", "chunks",
    "chunk_tokens", "largest_chunk_tokens", "held_back_steps", "preemptions", "recomputed_tokens",
    "turns", "waited_steps",
}  # fmt: skip
NAMED = {"request_id", "class_name", "tenant", "state", "yielded", "reasons"}
summaries = st.builds(
    RequestSummary,
    request_id=st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=ID_BYTES),
    class_name=names,
    tenant=names,
    state=st.sampled_from([int(each) for each in State]),
    yielded=st.lists(st.builds(Yielded, names, names, numbers), max_size=3).map(tuple),
    reasons=st.lists(st.tuples(st.integers(0, 254), counts), max_size=3).map(tuple),
    **{
        name: counts if name in COUNTED else numbers
        for name in RequestSummary._fields
        if name not in NAMED
    },
)


@given(summaries)
def test_a_summary_comes_back(told: RequestSummary) -> None:
    block = pack_history(7, told)
    assert len(block) == RECORD_BYTES
    assert unpack_history(block) == told
    key = unpack_key(block)
    assert (key.serial, key.arrived_ns, key.first_token_ns, key.ended_ns) == (
        7,
        told.arrived_ns,
        told.first_token_ns,
        told.ended_ns,
    )


@given(summaries, st.integers(0, RECORD_BYTES * 8 - 1))
def test_a_changed_record_is_torn(told: RequestSummary, bit: int) -> None:
    with pytest.raises(TornBlockError):
        unpack_history(flip(pack_history(1, told), bit))


def test_a_record_that_was_never_written_is_torn() -> None:
    with pytest.raises(TornBlockError):
        unpack_history(bytes(RECORD_BYTES))


@given(st.text(max_size=300), st.text(max_size=100), st.text(max_size=100))
def test_what_clients_say_is_cut_to_what_there_is_room_for(
    request_id: str, class_name: str, tenant: str
) -> None:
    told = TOLD._replace(
        request_id=request_id,
        class_name=class_name,
        tenant=tenant,
        yielded=(Yielded(class_name, tenant, 3), Yielded(tenant, class_name, 2)),
    )
    found = unpack_history(pack_history(1, told))
    assert len(found.request_id.encode()) <= ID_BYTES
    assert request_id.encode(errors="replace").startswith(found.request_id.encode())
    for name in (found.class_name, found.tenant):
        assert len(name.encode()) <= NAME_BYTES
    assert found.yielded == tuple(
        each._replace(class_name=found.class_name, tenant=found.tenant)
        if number == 0
        else each._replace(class_name=found.tenant, tenant=found.class_name)
        for number, each in enumerate(told.yielded[: len(found.yielded)])
    )
    assert found.ended_ns == TOLD.ended_ns


def test_its_own_class_and_tenant_always_fit() -> None:
    long = "x" * NAME_BYTES
    told = TOLD._replace(class_name=long, tenant=long, yielded=(Yielded(long, long, 3),) * 3)
    found = unpack_history(pack_history(1, told))
    assert (found.class_name, found.tenant, found.yielded) == (long, long, ())


def test_counts_that_no_request_can_have_are_the_largest_there_are() -> None:
    told = TOLD._replace(prompt_tokens=2**40, chunks=-1)
    found = unpack_history(pack_history(1, told))
    assert (found.prompt_tokens, found.chunks) == (2**32 - 1, 2**32 - 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / file_name(0)


@pytest.fixture
def writer(path: Path) -> Any:
    made = HistoryWriter(path, SMALL)
    yield made
    made.close()


def read_ids(path: Path) -> list[str]:
    """Ids in the file, by the time they were written."""
    histories = Histories(path)
    found = sorted((key.serial, histories.summary(offset)) for offset, key in histories.keys())  # noqa: SIM118
    return [told.request_id for _, told in found if told is not None]


def test_the_last_requests_that_ended_are_kept(writer: HistoryWriter, path: Path) -> None:
    assert read_ids(path) == []
    for number in range(6):
        writer.append(TOLD._replace(request_id=f"r{number}"))
    assert read_ids(path) == ["r2", "r3", "r4", "r5"]


def test_a_request_under_way_is_told_until_it_ends(writer: HistoryWriter, path: Path) -> None:
    slot = writer.begin()
    assert slot is not None
    writer.write(slot, TOLD._replace(request_id="early"))
    writer.append(TOLD._replace(request_id="other"))
    writer.write(slot, TOLD._replace(request_id="late"))
    assert read_ids(path) == ["other", "late"]
    writer.end(slot)
    assert read_ids(path) == ["other"]


def test_there_are_only_so_many_slots(writer: HistoryWriter) -> None:
    slots = [writer.begin() for _ in range(3)]
    assert (set(slots[:2]), slots[2]) == ({0, 1}, None)
    writer.end(0)
    assert writer.begin() == 0


def test_what_is_missing_is_told(writer: HistoryWriter, path: Path) -> None:
    writer.missing(3, 4)
    header = Histories(path).header
    assert (header.lost, header.dropped_spans) == (3, 4)


def test_a_record_that_is_being_written_is_looked_at_again(
    writer: HistoryWriter, path: Path
) -> None:
    writer.append(TOLD)
    histories = Histories(path)
    [(offset, _)] = histories.keys()
    histories._copy = flip(histories._copy, (offset + 300) * 8)
    assert histories.summary(offset) == TOLD


def test_a_record_that_stays_torn_is_left_out(writer: HistoryWriter, path: Path) -> None:
    writer.append(TOLD)
    [(offset, _)] = Histories(path).keys()
    path.write_bytes(flip(path.read_bytes(), (offset + 300) * 8))
    assert Histories(path).summary(offset) is None


@pytest.mark.parametrize("content", [b"", b"x" * 4096, bytes(1 << 20)])
def test_a_foreign_file_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(HistoryFileError):
        Histories(path)


def test_a_file_of_another_format_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as other:
        other.setattr(history_file, "FORMAT_VERSION", 99)
        HistoryWriter(path, SMALL).close()
    with pytest.raises(HistoryFileError, match="another format"):
        Histories(path)


def test_a_file_that_is_cut_short_tells_what_is_left(writer: HistoryWriter, path: Path) -> None:
    slot = writer.begin()
    assert slot is not None
    writer.write(slot, TOLD)
    for _ in range(4):
        writer.append(TOLD)
    os.truncate(path, 4096 + 4 * RECORD_BYTES + 10)
    assert len(list(Histories(path).keys())) == 3


def test_a_new_file_takes_the_place_of_an_older_one(writer: HistoryWriter, path: Path) -> None:
    writer.append(TOLD)
    with path.open("rb") as before:
        HistoryWriter(path, SMALL).close()
        assert read_ids(path) == []
        assert before.read(8) == history_file.MAGIC
    assert find_files(path.parent) == [path]


def test_it_has_all_its_pages_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / file_name(3)
    HistoryWriter(path).close()
    status = path.stat()
    assert status.st_blocks * 512 >= status.st_size > 5000 * RECORD_BYTES


def test_without_room_for_it_nothing_is_left_behind(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="no space"):
        HistoryWriter(path, SMALL)
    assert list(path.parent.iterdir()) == []
