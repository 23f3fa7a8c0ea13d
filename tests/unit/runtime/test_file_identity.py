"""Which file stands at a path."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headway_runtime.exchange.file_identity import FileIdentity

WAYS = {
    "as the C library says": None,
    "without the call": SimpleNamespace(),
    "where it is forbidden": SimpleNamespace(statx=lambda *_: -1),
}
ways = pytest.mark.parametrize("library", WAYS.values(), ids=WAYS.keys())


@ways
@pytest.mark.parametrize("changed_ns", [1, 1_700_000_000_123_456_789])
def test_it_is_what_the_file_system_says(tmp_path: Path, library: Any, changed_ns: int) -> None:
    path = tmp_path / "näme"
    path.write_bytes(b"four")
    os.utime(path, ns=(0, changed_ns))
    expected = (path.stat().st_ino, 4, *divmod(changed_ns, 10**9))
    assert FileIdentity(str(path), library).look() == expected


@ways
def test_where_there_is_no_file_it_says_so(tmp_path: Path, library: Any) -> None:
    with pytest.raises(FileNotFoundError):
        FileIdentity(str(tmp_path / "none"), library).look()


def test_no_other_thread_runs_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    identity = FileIdentity(str(tmp_path / "file"))
    may_run, ran = threading.Lock(), []
    may_run.acquire()
    other = threading.Thread(target=lambda: ran.append(may_run.acquire()))
    other.start()
    interval_s = sys.getswitchinterval()
    try:
        # Nobody is made to give way before this.
        sys.setswitchinterval(60)
        may_run.release()
        for _ in range(1000):
            identity.look()
        assert not ran
    finally:
        sys.setswitchinterval(interval_s)
        other.join()
    assert ran
