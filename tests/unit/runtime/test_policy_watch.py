"""How an engine follows the policy file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from headway_runtime.exchange import policy_file
from headway_runtime.exchange.policy_watch import PolicyWatch
from headway_runtime.policy import encode
from tests.unit.runtime.policies import policy


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / policy_file.FILE_NAME


@pytest.fixture
def watch(path: Path) -> Any:
    policy_file.write(path, encode(policy(1, 1, 1)))
    made = PolicyWatch(path)
    assert made.refresh()
    return made


def test_without_a_file_there_is_no_policy(path: Path) -> None:
    watch = PolicyWatch(path)
    assert not watch.refresh()
    assert (watch.policy, watch.refused) == (None, 0)


def test_a_replaced_file_is_taken_at_the_next_look(watch: Any, path: Path) -> None:
    policy_file.write(path, encode(policy(1, 1, 2, token_budget=5)))
    assert watch.refresh()
    assert watch.policy.token_budget == 5


def test_a_replaced_file_is_seen_even_with_the_same_time_and_size(watch: Any, path: Path) -> None:
    before = path.stat()
    policy_file.write(path, encode(policy(1, 1, 2)))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert watch.refresh()


def test_an_unchanged_file_is_not_read_again(watch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_file, "read", lambda _: pytest.fail("read again"))
    assert not watch.refresh()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"foreign",
        policy_file.frame(b"{}"),
        policy_file.frame(encode(policy(9, 9, 9)))[:-1],
        policy_file.frame(encode(policy(1, 1, 0))),
    ],
    ids=["empty", "foreign", "no policy", "torn", "outdated"],
)
def test_a_file_that_must_not_be_used_leaves_the_last_good_policy(
    watch: Any, path: Path, content: bytes
) -> None:
    path.write_bytes(content)
    assert not watch.refresh()
    assert (watch.policy, watch.refused) == (policy(1, 1, 1), 1)


def test_a_refused_file_is_counted_once(watch: Any, path: Path) -> None:
    path.write_bytes(b"foreign")
    watch.refresh()
    watch.refresh()
    assert watch.refused == 1


def test_a_file_that_vanishes_leaves_the_last_good_policy(watch: Any, path: Path) -> None:
    path.unlink()
    assert not watch.refresh()
    assert watch.policy == policy(1, 1, 1)
