"""What one process that lets requests in tells the others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway_runtime.exchange.let_in_file import (
    KIND,
    SLOTS,
    LetInRequest,
    LetInWriter,
    OthersLetIn,
)
from headway_runtime.exchange.process_files import file_name, find_files

OTHER = 1
"""A process that is always there."""

NO_PID = 2**22 + 1
"""No process has it: it is above the most that Linux allows."""


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LetInWriter]:
    """The writer of another process."""
    made = LetInWriter(tmp_path)
    (tmp_path / file_name(KIND, os.getpid())).replace(tmp_path / file_name(KIND, OTHER))
    yield made
    made.close()


@pytest.fixture
def others(tmp_path: Path) -> Iterator[OthersLetIn]:
    made = OthersLetIn(tmp_path)
    yield made
    made.close()


def request(came_s: float, tokens: int = 7) -> LetInRequest:
    return LetInRequest("chat", tokens, came_s)


def test_others_see_what_came_since_and_is_still_there(
    writer: LetInWriter, others: OthersLetIn
) -> None:
    assert list(others.since(0.0)) == []
    for ticket, came_s in enumerate((10.0, 20.0, 30.0), start=1):
        writer.enter(ticket, request(came_s))
    assert list(others.since(10.0)) == [request(30.0), request(20.0)]
    writer.leave(3)
    writer.leave(3)
    assert list(others.since(10.0)) == [request(20.0)]
    assert list(others.since(30.0)) == []


def test_the_last_ones_are_told_of(writer: LetInWriter, others: OthersLetIn) -> None:
    for ticket in range(1, SLOTS + 3):
        writer.enter(ticket, request(float(ticket)))
    # Its place is another one's.
    writer.leave(1)
    found = list(others.since(0.0))
    assert [each.came_s for each in found] == [float(each) for each in range(SLOTS + 2, 2, -1)]


def test_what_this_process_lets_in_is_not_anothers(tmp_path: Path, others: OthersLetIn) -> None:
    own = LetInWriter(tmp_path)
    own.enter(1, request(10.0))
    assert list(others.since(0.0)) == []
    own.close()


def test_no_length_is_too_long(writer: LetInWriter, others: OthersLetIn) -> None:
    writer.enter(1, request(1.0, tokens=2**40))
    assert [each.prompt_tokens for each in others.since(0.0)] == [2**32 - 1]


def test_torn_records_and_foreign_files_were_not_let_in(
    tmp_path: Path, writer: LetInWriter, others: OthersLetIn
) -> None:
    writer.enter(1, request(10.0))
    writer.enter(2, request(20.0))
    for pid, content in ((2, b""), (3, b"something else" * 10_000)):
        (tmp_path / file_name(KIND, pid)).write_bytes(content)
    path = tmp_path / file_name(KIND, OTHER)
    torn = bytearray(path.read_bytes())
    torn[torn.rindex(b"chat")] ^= 1
    path.write_bytes(torn)
    assert list(others.since(0.0)) == [request(10.0)]


def test_processes_come_and_go(tmp_path: Path) -> None:
    now_s = 0.0
    others = OthersLetIn(tmp_path, lambda: now_s)
    assert list(others.since(0.0)) == []
    writer = LetInWriter(tmp_path)
    own, other = (tmp_path / file_name(KIND, pid) for pid in (os.getpid(), OTHER))
    own.replace(other)
    writer.enter(1, request(10.0))
    now_s = 2.0
    assert list(others.since(0.0)) == [request(10.0)]
    other.unlink()
    now_s = 4.0
    assert list(others.since(0.0)) == []
    writer.close()


def test_files_of_processes_that_are_gone_are_removed(tmp_path: Path) -> None:
    (tmp_path / file_name(KIND, NO_PID)).touch()
    LetInWriter(tmp_path).close()
    assert find_files(tmp_path, KIND).keys() == {os.getpid()}
