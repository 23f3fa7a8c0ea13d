"""The file that carries the current policy from the sidecar to the engine.

One header line, then the encoded policy::

    HEADWAY-POLICY <format version> <payload bytes, 8 digits> <sha256 of the payload>

It is replaced atomically, and a reader takes nothing that does not match its header exactly: a
torn or foreign file leaves the policy that is in force.
"""

from __future__ import annotations

import enum
import hashlib
import os
import re
from pathlib import Path

from headway_runtime.policy import MAX_PAYLOAD_BYTES

FILE_NAME = "policy"
FRAME_VERSION = 1

_MAGIC = b"HEADWAY-POLICY"
_HEADER = re.compile(rb"HEADWAY-POLICY ([1-9][0-9]{0,3}) ([0-9]{8}) ([0-9a-f]{64})\n")
_MAX_HEADER_BYTES = 128


class Problem(str, enum.Enum):
    """Why a policy file is not taken."""

    FOREIGN = "Foreign"
    """Not a policy file."""
    NEWER = "Newer"
    """Written by a later release in a format this one cannot read."""
    TORN = "Torn"
    """Cut short, changed, or too long."""


class PolicyFileError(Exception):
    """A policy file that must not be used.

    Attributes:
        problem: why.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.value)
        self.problem = problem


def frame(payload: bytes) -> bytes:
    """The content of a policy file that carries ``payload``."""
    digest = hashlib.sha256(payload).hexdigest()
    return b"%s %d %08d %s\n%s" % (_MAGIC, FRAME_VERSION, len(payload), digest.encode(), payload)


def unframe(content: bytes) -> bytes:
    """The payload of a policy file's content.

    Raises:
        PolicyFileError: the content is foreign, newer or torn.
    """
    header = _HEADER.match(content)
    if header is None:
        raise PolicyFileError(Problem.FOREIGN)
    if int(header[1]) > FRAME_VERSION:
        raise PolicyFileError(Problem.NEWER)
    payload = content[header.end() :]
    if len(payload) != int(header[2]):
        raise PolicyFileError(Problem.TORN)
    if hashlib.sha256(payload).hexdigest().encode() != header[3]:
        raise PolicyFileError(Problem.TORN)
    return payload


def write(path: Path, payload: bytes) -> None:
    """Replace the file at ``path``; a reader sees the old content or the new, nothing between.

    Raises:
        OSError: the directory cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(frame(payload))
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read(path: Path) -> bytes:
    """The payload of the file at ``path``.

    Raises:
        OSError: there is none, or it cannot be read.
        PolicyFileError: it is foreign, newer or torn.
    """
    with path.open("rb") as file:
        return unframe(file.read(_MAX_HEADER_BYTES + MAX_PAYLOAD_BYTES))
