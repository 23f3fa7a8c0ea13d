"""The file in which an engine tells who is suspected of having killed the ones before it."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from headway_runtime.exchange.fingerprint import BYTES
from headway_runtime.exchange.twin_block import TwinBlockFormat, TwinBlockWriter
from headway_runtime.scheduling.quarantine.suspects import MOST_SUSPECTS, Suspect, Suspects

_HEAD = struct.Struct("<QI")
_SUSPECT = struct.Struct(f"<{BYTES}s64sHHd")
_FORMAT = TwinBlockFormat(
    b"HEADWAYQ", version=1, body_bytes=_HEAD.size + MOST_SUSPECTS * _SUSPECT.size
)
_MOST = 2**16 - 1


class Told(NamedTuple):
    """What the file tells.

    Attributes:
        crashes: engines that died with requests under way, since the pod was made.
        suspects: by fingerprint.
    """

    crashes: int = 0
    suspects: Suspects = MappingProxyType({})


def file_name(rank: int) -> str:
    """Name of the file of the engine process with this data parallel rank."""
    return f"suspects-{rank}.bin"


class SuspectsWriter:
    """Writes them.

    Args:
        path: where; an older file there is replaced.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._writer = TwinBlockWriter(path, _FORMAT)

    def write(self, told: Told) -> None:
        """Replace what is told."""
        suspects = told.suspects.items()
        entries = [_packed(*each) for each in suspects]
        self._writer.write(_HEAD.pack(told.crashes, len(entries)) + b"".join(entries))

    def close(self) -> None:
        """Release the file, which stays for readers."""
        self._writer.close()


def read_told(path: Path) -> Told:
    """What the file tells; nothing where there is none that can be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return Told()
    try:
        body = _FORMAT.read(descriptor)
    except OSError:
        return Told()
    finally:
        os.close(descriptor)
    return Told() if body is None else _unpacked(body)


def read_all(run_dir: Path) -> Told:
    """What all engine processes of this pod tell together."""
    crashes, suspects = 0, dict[bytes, Suspect]()
    for path in sorted(run_dir.glob("suspects-*.bin")):
        told = read_told(path)
        crashes += told.crashes
        suspects.update(told.suspects)
    return Told(crashes, suspects)


def _packed(fingerprint: bytes, suspect: Suspect) -> bytes:
    return _SUSPECT.pack(
        fingerprint,
        suspect.tenant.encode(),
        min(suspect.before_token, _MOST),
        min(suspect.in_all, _MOST),
        suspect.last_s,
    )


def _unpacked(body: bytes) -> Told:
    crashes, count = _HEAD.unpack_from(body)
    end = _HEAD.size + min(count, MOST_SUSPECTS) * _SUSPECT.size
    return Told(
        crashes,
        {
            fingerprint: Suspect(tenant.rstrip(b"\0").decode("ascii", errors="replace"), *rest)
            for fingerprint, tenant, *rest in _SUSPECT.iter_unpack(body[_HEAD.size : end])
        },
    )
