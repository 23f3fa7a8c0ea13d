"""Which file stands at a path, asked without giving way to other threads."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable

Identity = tuple[int, int, int, int]
"""Inode, size, and when it was last changed: seconds and nanoseconds. The inode too, since two
replacements may carry the same time on a coarse clock."""

_AT_FDCWD = -100
_STATX_BASIC_STATS = 0x7FF
_STATX_BYTES = 256
_IDENTITY = struct.Struct("=32xQQ64xqI")
"""Where Linux's ``struct statx`` has it: the same on every processor."""


class FileIdentity:
    """Tells the identity of the file at one path.

    ``os.stat`` lets other threads have the interpreter, and takes it back only when they are done:
    between two steps vLLM's output thread has a whole batch to encode, and the engine would wait
    for it every time. A library loaded as ``PyDLL`` is called with the interpreter held; the call
    takes a microsecond.

    Args:
        path: the path.
        library: what has the C library's functions.
    """

    def __init__(self, path: str, library: ctypes.CDLL | None = None) -> None:
        self._path = path
        self._encoded = os.fsencode(path)
        self._buffer = ctypes.create_string_buffer(_STATX_BYTES)
        self._statx = _statx(library or ctypes.PyDLL(None))

    def look(self) -> Identity:
        """The identity now.

        Raises:
            OSError: there is no file, or it cannot be looked at.
        """
        arguments = (_AT_FDCWD, self._encoded, 0, _STATX_BASIC_STATS, self._buffer)
        if self._statx is not None and self._statx(*arguments) == 0:
            inode, size, seconds, nanoseconds = _IDENTITY.unpack_from(self._buffer)
            return inode, size, seconds, nanoseconds
        # No file, or an old kernel or sandbox without this call.
        status = os.stat(self._path)  # noqa: PTH116 - the identity that belongs to it
        return status.st_ino, status.st_size, *divmod(status.st_mtime_ns, 10**9)


def _statx(library: ctypes.CDLL) -> Callable[..., int] | None:
    """The C library's function, if it has one."""
    function = getattr(library, "statx", None)
    if function is not None:
        function.argtypes = (
            ctypes.c_int,
            ctypes.c_char_p,
            ctypes.c_int,
            ctypes.c_uint,
            ctypes.c_char_p,
        )
    return function
