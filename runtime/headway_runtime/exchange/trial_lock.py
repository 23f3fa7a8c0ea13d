"""A lock that one of the processes that let requests in has at a time.

The kernel takes it back from a process that ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

FILE_NAME = "trial"
"""Name of its file in the run directory."""


class TrialLock:
    """The lock. Where its file cannot be used, everybody has it: a fault here holds nobody up.

    Args:
        path: its file, made when it is first asked for.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Have it, unless another process does; whoever has it does not ask again."""
        try:
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def give_back(self) -> None:
        """Let another process have it."""
        if self._descriptor is not None:
            # Closing it is what cannot fail to give it back.
            os.close(self._descriptor)
            self._descriptor = None
