"""One process at a time tries a suspect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from headway_runtime.exchange.trial_lock import FILE_NAME, TrialLock

_HOLD_IT = """
import sys
from pathlib import Path
from headway_runtime.exchange.trial_lock import TrialLock
print(TrialLock(Path(sys.argv[1])).take(), flush=True)
sys.stdin.read()
"""


def test_a_process_that_is_killed_gives_it_back(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    lock = TrialLock(path)
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD_IT, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": ":".join(sys.path)},
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"True\n"
        assert not lock.take()
        other.kill()
    assert lock.take()
    assert not TrialLock(path).take()
    lock.give_back()
    assert TrialLock(path).take()
