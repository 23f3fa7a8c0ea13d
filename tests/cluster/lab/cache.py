"""Directories that are built once and kept, named by a hash of what they are built from."""

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .mounts import remove_tree
from .paths import Paths

_KEY_DIGITS = 12


def digest(*parts: str | bytes) -> str:
    """A short hash of the parts; ("ab", "c") and ("a", "bc") differ."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        whole.update(f"{len(data)}:".encode())
        whole.update(data)
    return whole.hexdigest()[:_KEY_DIGITS]


def digest_files(root: Path, files: Iterable[Path]) -> str:
    """A short hash of the names (relative to `root`) and contents of files, in any order."""
    parts = ((str(file.relative_to(root)), file.read_bytes()) for file in sorted(files))
    return digest(*(part for pair in parts for part in pair))


@contextmanager
def locked(paths: Paths, name: str) -> Iterator[None]:
    """Hold the lock `name`; the kernel frees it however the holder ends."""
    paths.locks.mkdir(parents=True, exist_ok=True)
    with (paths.locks / name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def cached_directory(paths: Paths, name: str, key: str, make: Callable[[Path], None]) -> Path:
    """The directory `name`-`key` of the cache, filled by `make` the first time.

    `make` fills a directory under another name, which is renamed when complete: an interrupted
    build is never taken for a finished one. Concurrent callers wait for each other.
    """
    target = paths.cache / f"{name}-{key}"
    if target.is_dir():
        return target
    with locked(paths, f"{name}-{key}"):
        if not target.is_dir():
            partial = paths.cache / f".{name}-{key}.partial"
            remove_tree(partial)
            partial.mkdir(parents=True, mode=0o755)
            make(partial)
            # Pods run as another user and read the cache through hostPath volumes.
            partial.chmod(0o755)
            partial.rename(target)
    return target


def make_readable(directory: Path) -> None:
    """For pods' users; some libraries write files for their owner only."""
    for path in (directory, *directory.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def point(link: Path, target: Path) -> None:
    """Make `link` a relative symbolic link to `target`, atomically.

    Relative, so that it also holds where the cache is mounted under another path.
    """
    wanted = Path(os.path.relpath(target, link.parent))
    if link.is_symlink() and link.readlink() == wanted:
        return
    fresh = link.with_name(f".{link.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(wanted)
    fresh.replace(link)
