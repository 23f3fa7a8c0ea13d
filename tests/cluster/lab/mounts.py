"""Mounts below a directory, and removing a tree without following one."""

import re
import shutil
from pathlib import Path

from .commands import succeeds
from .errors import LabError

_OCTAL_ESCAPE = re.compile(r"\\([0-7]{3})")
_MOUNT_POINT_FIELD = 4


def parse_mount_points(mountinfo: str) -> list[Path]:
    """Mount points of /proc/self/mountinfo in the order of mounting."""
    fields = (line.split(" ") for line in mountinfo.splitlines())
    return [Path(_unescape(field[_MOUNT_POINT_FIELD])) for field in fields]


def _unescape(text: str) -> str:
    return _OCTAL_ESCAPE.sub(lambda match: chr(int(match.group(1), 8)), text)


def mounts_below(directory: Path) -> list[Path]:
    """Mount points at or below `directory`, the last mounted first."""
    points = parse_mount_points(Path("/proc/self/mountinfo").read_text())
    return [point for point in reversed(points) if point.is_relative_to(directory)]


def unmount_below(directory: Path) -> None:
    """Unmount everything at or below `directory`.

    Lazily, as a process that is going away may still hold a file open. Raises LabError when a mount
    stays: deleting through it would delete what is mounted (a bind mount of the cache, say).
    """
    for point in mounts_below(directory):
        succeeds(["umount", "--lazy", point])
    left = mounts_below(directory)
    if left:
        names = ", ".join(str(point) for point in left)
        raise LabError(f"cannot unmount {names}: unmount them by hand (umount -l), then try again")


def remove_tree(directory: Path) -> None:
    """Delete a directory with all below it, mounts unmounted first; nothing happens without it."""
    if directory.exists():
        unmount_below(directory)
        shutil.rmtree(directory)
