"""The board through which an engine lets know how long a request would wait."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.exchange.admission_board import (
    FRESH_S,
    IDLE_FRESH_S,
    LOOK_PERIOD_S,
    MAX_HEAVY,
    AdmissionBoardReader,
    AdmissionBoardWriter,
    file_name,
    pack_board,
    unpack_board,
)
from headway_runtime.policy import MAX_CLASSES
from headway_runtime.scheduling.admission.refusal import Board, ClassWait

NOW_S = 1_700_000_000.0
NOBODY_WAITS = Board(NOW_S, 1e-4, {"chat": ClassWait(0, 0.05, 0.05), "batch": ClassWait()})
STEP_IS_LEFT = replace(NOBODY_WAITS, classes={"chat": ClassWait(0, 3.0, 0.1)})
SOMEBODY_WAITS = replace(NOBODY_WAITS, classes={"chat": ClassWait(1, 0.5, 0.1)})

names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
waits = st.floats(0, 80_000)
boards = st.builds(
    Board,
    written_s=st.floats(0, 2e9),
    prompt_token_s=waits,
    classes=st.dictionaries(
        names, st.builds(ClassWait, st.integers(0, 2**32 - 1), waits, waits), max_size=MAX_CLASSES
    ),
    heavy=st.frozensets(names, max_size=MAX_HEAVY),
    free_slots=st.integers(0, 2**32 - 1),
    prompt_token_work_s=waits,
    answer_work_s=waits,
)


class Clock:
    def __init__(self) -> None:
        self.now_s = NOW_S

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / file_name(0)


@pytest.fixture
def writer(path: Path) -> Iterator[AdmissionBoardWriter]:
    made = AdmissionBoardWriter(path)
    yield made
    made.close()


@pytest.fixture
def reader(path: Path, clock: Clock) -> Iterator[AdmissionBoardReader]:
    made = AdmissionBoardReader(path, clock)
    yield made
    made.close()


@given(boards)
def test_a_board_comes_back_as_it_was(board: Board) -> None:
    assert unpack_board(pack_board(board)) == board


def test_what_is_written_is_read(
    writer: AdmissionBoardWriter, reader: AdmissionBoardReader
) -> None:
    for board in (SOMEBODY_WAITS, NOBODY_WAITS, SOMEBODY_WAITS):
        writer.write(board)
        assert reader.read() == board
        assert reader.read() == board


@pytest.mark.usefixtures("writer")
def test_before_the_first_write_there_is_no_board(reader: AdmissionBoardReader) -> None:
    assert reader.read() is None


def test_a_board_is_found_as_soon_as_there_is_one(path: Path, reader: AdmissionBoardReader) -> None:
    assert reader.read() is None
    writer = AdmissionBoardWriter(path)
    writer.write(NOBODY_WAITS)
    assert reader.read() == NOBODY_WAITS
    writer.close()


@pytest.mark.parametrize(
    "told",
    [
        (SOMEBODY_WAITS, FRESH_S, True),
        (SOMEBODY_WAITS, FRESH_S + 0.1, False),
        (SOMEBODY_WAITS, -FRESH_S - 0.1, False),
        (NOBODY_WAITS, IDLE_FRESH_S, True),
        (NOBODY_WAITS, IDLE_FRESH_S + 0.1, False),
        (STEP_IS_LEFT, FRESH_S + 0.1, False),
        (Board(NOW_S, 0.0), IDLE_FRESH_S, True),
    ],
    ids=["fresh", "stopped", "of the future", "idle", "too old", "not done", "without classes"],
)
def test_an_old_board_is_believed_only_where_nobody_waits(
    writer: AdmissionBoardWriter,
    reader: AdmissionBoardReader,
    clock: Clock,
    told: tuple[Board, float, bool],
) -> None:
    board, age_s, is_believed = told
    writer.write(board)
    clock.now_s = NOW_S + age_s
    assert reader.read() == (board if is_believed else None)


def test_an_old_board_is_believed_again_when_it_is_renewed(
    writer: AdmissionBoardWriter, reader: AdmissionBoardReader, clock: Clock
) -> None:
    writer.write(SOMEBODY_WAITS)
    clock.now_s = NOW_S + 100
    assert reader.read() is None
    renewed = replace(SOMEBODY_WAITS, written_s=clock.now_s)
    writer.write(renewed)
    assert reader.read() == renewed


def test_a_replaced_file_is_noticed_within_a_second(
    path: Path, writer: AdmissionBoardWriter, reader: AdmissionBoardReader, clock: Clock
) -> None:
    writer.write(NOBODY_WAITS)
    assert reader.read() == NOBODY_WAITS
    restarted = AdmissionBoardWriter(path)
    restarted.write(replace(NOBODY_WAITS, heavy=frozenset({"acme"})))
    clock.now_s += LOOK_PERIOD_S
    found = reader.read()
    assert found is not None
    assert found.heavy == {"acme"}
    restarted.close()


def test_a_file_that_is_gone_has_no_board(
    path: Path, writer: AdmissionBoardWriter, reader: AdmissionBoardReader, clock: Clock
) -> None:
    writer.write(NOBODY_WAITS)
    assert reader.read() is not None
    path.unlink()
    clock.now_s += LOOK_PERIOD_S
    assert reader.read() is None


@given(st.binary(max_size=9000))
def test_a_foreign_file_has_no_board(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("run") / file_name(0)
    path.write_bytes(content)
    reader = AdmissionBoardReader(path, Clock())
    assert reader.read() is None
    reader.close()


def test_what_there_is_no_room_for_is_left_out() -> None:
    classes = {"x" * 64: ClassWait(1)} | {f"c{number}": ClassWait(1) for number in range(40)}
    heavy = frozenset(f"t{number:02}" for number in range(40)) | {"y" * 64}
    found = unpack_board(pack_board(Board(NOW_S, 0.0, classes, heavy)))
    assert set(found.classes) == {f"c{number}" for number in range(MAX_CLASSES)}
    assert found.heavy == {f"t{number:02}" for number in range(MAX_HEAVY)}


@pytest.mark.parametrize(
    ("told", "found"), [(math.inf, 86_400.0), (math.nan, 0.0), (-1.0, 0.0), (5.0, 5.0)]
)
def test_a_wait_can_always_be_calculated_with(told: float, found: float) -> None:
    board = Board(NOW_S, told, {"chat": ClassWait(0, told, told)})
    expected = Board(NOW_S, found, {"chat": ClassWait(0, found, found)})
    assert unpack_board(pack_board(board)) == expected
