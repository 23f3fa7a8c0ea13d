"""The file that carries the policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.exchange import policy_file
from headway_runtime.exchange.policy_file import PolicyFileError, Problem, frame, unframe

payloads = st.binary(max_size=300)


@given(payloads)
def test_a_framed_payload_comes_back(payload: bytes) -> None:
    assert unframe(frame(payload)) == payload


@given(payloads, st.data())
def test_every_truncation_is_refused(payload: bytes, data: st.DataObject) -> None:
    content = frame(payload)
    with pytest.raises(PolicyFileError):
        unframe(content[: data.draw(st.integers(0, len(content) - 1))])


@given(payloads, st.data())
def test_every_flipped_bit_is_refused(payload: bytes, data: st.DataObject) -> None:
    content = bytearray(frame(payload))
    bit = data.draw(st.integers(0, len(content) * 8 - 1))
    content[bit // 8] ^= 1 << bit % 8
    with pytest.raises(PolicyFileError):
        unframe(bytes(content))


@given(payloads, st.binary(min_size=1, max_size=20))
def test_anything_behind_the_payload_is_refused(payload: bytes, more: Any) -> None:
    with pytest.raises(PolicyFileError):
        unframe(frame(payload) + more)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", Problem.FOREIGN),
        (b"{}", Problem.FOREIGN),
        (frame(b"x").replace(b" 1 ", b" 2 ", 1), Problem.NEWER),
        (frame(b"xy")[:-1], Problem.TORN),
        (frame(b"x")[:-1] + b"y", Problem.TORN),
    ],
)
def test_the_problem_is_named(content: bytes, problem: Any) -> None:
    with pytest.raises(PolicyFileError) as caught:
        unframe(content)
    assert caught.value.problem is problem


def test_a_reader_sees_the_old_file_until_the_new_one_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    path = tmp_path / policy_file.FILE_NAME
    policy_file.write(path, b"old")
    seen = []
    replace = Path.replace

    def look_first(self: Path, target: Path) -> Path:
        seen.append(policy_file.read(path))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", look_first)
    policy_file.write(path, b"new")
    assert (seen, policy_file.read(path)) == ([b"old"], b"new")


def test_writing_leaves_nothing_else_behind(tmp_path: Path) -> None:
    policy_file.write(tmp_path / policy_file.FILE_NAME, b"x")
    assert [each.name for each in tmp_path.iterdir()] == [policy_file.FILE_NAME]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / policy_file.FILE_NAME
    policy_file.write(path, b"old")
    write_bytes = Path.write_bytes

    def full(self: Path, content: bytes) -> None:
        write_bytes(self, content[:10])
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="no space left"):
        policy_file.write(path, b"new")
    assert list(tmp_path.iterdir()) == [path]
    assert policy_file.read(path) == b"old"


def test_an_endless_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / policy_file.FILE_NAME
    path.write_bytes(frame(b"x" * 200_000))
    with pytest.raises(PolicyFileError):
        policy_file.read(path)
