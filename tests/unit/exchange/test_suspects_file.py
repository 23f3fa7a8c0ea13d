"""How an engine tells who is suspected."""

from __future__ import annotations

from pathlib import Path

from headway_runtime.exchange.suspects_file import (
    SuspectsWriter,
    Told,
    file_name,
    read_all,
    read_told,
)
from headway_runtime.scheduling.quarantine.suspects import MOST_SUSPECTS, Suspect


def write(run_dir: Path, rank: int, told: Told) -> Path:
    path = run_dir / file_name(rank)
    writer = SuspectsWriter(path)
    writer.write(told)
    writer.close()
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    full = {
        number.to_bytes(12, "big"): Suspect("t" * 63, 1, 2**16 - 1, 1.5)
        for number in range(MOST_SUSPECTS)
    }
    assert read_told(write(tmp_path, 0, Told(7, full))) == Told(7, full)


def test_engine_processes_are_taken_together(tmp_path: Path) -> None:
    first, second = {b"a" * 12: Suspect("t", 1, 1, 1.0)}, {b"b" * 12: Suspect("", 2, 2, 2.0)}
    write(tmp_path, 0, Told(1, first))
    write(tmp_path, 1, Told(2, second))
    assert read_all(tmp_path) == Told(3, {**first, **second})


def test_a_file_that_cannot_be_read_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / file_name(0)).write_bytes(b"foreign" * 1000)
    (tmp_path / file_name(1)).mkdir()
    assert read_all(tmp_path) == read_told(tmp_path / file_name(2)) == Told()
