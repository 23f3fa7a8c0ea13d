"""Copies what the engine process needs into the volume that it shares with this image.

Run as ``python3 -m headway_runtime.install DEST`` in an init container: the engine then finds the
package under ``DEST/lib``. Only pure Python goes there, for any Python from 3.10 on.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from headway_runtime.executors.vllm.last_words import ENTRY_POINTS

PACKAGE = Path(__file__).resolve().parent

ENGINE_SIDE = (
    "__init__.py",
    "policy",
    "drain.py",
    "scheduling",
    "exchange",
    "door",
    "executors/__init__.py",
    "executors/interface.py",
    "executors/vllm",
    "preflight",
)
"""What is copied: files and whole packages, relative to this package. These may import nothing but
the standard library, vLLM and each other."""

_METADATA = "headway_runtime-0.dist-info"
_FOR_ALL = 0o755


def install(destination: Path) -> Path:
    """Copy the engine's part of this package to ``destination/lib/headway_runtime``.

    It appears there whole or not at all; an earlier copy is replaced, so that the init container
    may be run again.

    Returns:
        The directory to search for the package.

    Raises:
        OSError: the volume cannot be written.
    """
    library = destination / "lib"
    library.mkdir(parents=True, exist_ok=True)
    library.chmod(_FOR_ALL)
    staging = Path(tempfile.mkdtemp(prefix=".install-", dir=destination))
    try:
        _copy(staging / PACKAGE.name)
        _announce(staging / _METADATA)
        for name in (PACKAGE.name, _METADATA):
            _replace(staging / name, library / name, staging / f"old-{name}")
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return library


def _announce(target: Path) -> None:
    """Write the metadata by which vLLM finds what it is to call in its processes."""
    target.mkdir()
    (target / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: headway-runtime\nVersion: 0\n", encoding="ascii"
    )
    (target / "entry_points.txt").write_text(ENTRY_POINTS, encoding="ascii")
    _open_to_all(target)


def _copy(target: Path) -> None:
    for name in ENGINE_SIDE:
        source, copy = PACKAGE / name, target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, copy)
    _open_to_all(target)


def _open_to_all(target: Path) -> None:
    for path in (target, *target.rglob("*")):
        # The engine may run as another user than this container, and needs no more than to read.
        path.chmod(_FOR_ALL if path.is_dir() else 0o644)


def _replace(new: Path, place: Path, aside: Path) -> None:
    if place.exists():
        place.rename(aside)
    new.rename(place)


def main(command_line: list[str]) -> int:
    """Install; the process's exit code."""
    if len(command_line) != 1:
        print("usage: python3 -m headway_runtime.install DEST", file=sys.stderr)  # noqa: T201
        return 2
    install(Path(command_line[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
