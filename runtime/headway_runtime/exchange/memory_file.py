"""A file in memory that one process writes and others read."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from pathlib import Path


def create(path: Path, size: int, fill: Callable[[mmap.mmap], None]) -> mmap.mmap:
    """Make a file of this size in the place of an older one.

    It appears under its name once it is filled, and has all its pages: for want of one a later
    write would be fatal.

    Args:
        path: where.
        size: in bytes.
        fill: writes what it begins with.

    Raises:
        OSError: it cannot be made.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w+b") as file:
            os.posix_fallocate(file.fileno(), 0, size)
            memory = mmap.mmap(file.fileno(), 0)
        fill(memory)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return memory
