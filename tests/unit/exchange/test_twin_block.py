"""A block in two copies, of which a reader always finds one that is whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.exchange.twin_block import TwinBlockFormat, TwinBlockWriter
from tests.unit.runtime.blocks import flip

BODY_BYTES = 16
LAYOUT = TwinBlockFormat(b"TESTTEST", version=3, body_bytes=BODY_BYTES)
OLD, NEW = (b"the old body....", b"the new body....")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


@pytest.fixture
def writer(path: Path) -> Iterator[TwinBlockWriter]:
    made = TwinBlockWriter(path, LAYOUT)
    yield made
    made.close()


def content(*bodies: bytes) -> bytes:
    """What a file holds after these were written to it."""
    whole = bytearray(LAYOUT.file_bytes)
    for revision, body in enumerate(bodies, 1):
        block = LAYOUT.pack(revision, body)
        whole[LAYOUT.offset(revision) : LAYOUT.offset(revision) + len(block)] = block
    return bytes(whole)


@given(st.lists(st.binary(min_size=BODY_BYTES, max_size=BODY_BYTES), min_size=1, max_size=5))
def test_the_last_body_written_is_read(bodies: list[bytes]) -> None:
    assert LAYOUT.newest(content(*bodies)) == bodies[-1]


@given(st.data())
def test_a_flipped_bit_leaves_one_of_the_two_as_it_was(data: st.DataObject) -> None:
    whole = content(OLD, NEW)
    bit = data.draw(st.integers(0, len(whole) * 8 - 1))
    assert LAYOUT.newest(flip(whole, bit)) in (OLD, NEW)


@given(st.integers(0, LAYOUT.file_bytes))
def test_a_file_cut_short_gives_a_whole_body_or_none(length: int) -> None:
    assert LAYOUT.newest(content(OLD, NEW)[:length]) in (OLD, NEW, None)


def test_while_the_newer_one_is_written_the_older_is_read() -> None:
    whole = bytearray(content(OLD, NEW))
    whole[LAYOUT.offset(2) + 20] ^= 1
    assert LAYOUT.newest(bytes(whole)) == OLD


@pytest.mark.parametrize(
    "other",
    [
        TwinBlockFormat(b"TESTTEST", version=4, body_bytes=BODY_BYTES),
        TwinBlockFormat(b"FOREIGN!", version=3, body_bytes=BODY_BYTES),
        TwinBlockFormat(b"TESTTEST", version=3, body_bytes=2 * BODY_BYTES),
    ],
    ids=["version", "magic", "length"],
)
def test_a_file_of_another_format_has_no_body(other: TwinBlockFormat) -> None:
    assert other.newest(content(OLD, NEW)) is None


def test_a_body_shorter_than_there_is_room_for_ends_in_zeros(
    path: Path, writer: TwinBlockWriter
) -> None:
    writer.write(NEW)
    writer.write(b"x")
    assert LAYOUT.newest(path.read_bytes()) == b"x".ljust(BODY_BYTES, b"\0")


def test_a_new_file_has_no_body(path: Path, writer: TwinBlockWriter) -> None:
    assert len(path.read_bytes()) == LAYOUT.file_bytes
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert LAYOUT.read(descriptor) is None
        writer.write(NEW)
        assert LAYOUT.read(descriptor) == NEW
    finally:
        os.close(descriptor)


@pytest.mark.usefixtures("writer")
def test_nothing_is_left_beside_the_file(path: Path) -> None:
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_cannot_be_made_leaves_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="disk full"):
        TwinBlockWriter(path, LAYOUT)
    assert not list(path.parent.iterdir())
