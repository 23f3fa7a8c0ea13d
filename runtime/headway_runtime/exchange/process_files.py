"""Files of which each process that lets requests in has its own, named after its id."""

from __future__ import annotations

import re
from pathlib import Path

_NAME = re.compile(r"[a-z-]+-([0-9]{1,10})\.bin\Z")


def file_name(kind: str, pid: int) -> str:
    """Name of the file of the process with this id."""
    return f"{kind}-{pid}.bin"


def find_files(run_dir: Path, kind: str) -> dict[int, Path]:
    """Files of this kind by their processes' ids."""
    found = {path: _NAME.match(path.name) for path in sorted(run_dir.glob(f"{kind}-*.bin"))}
    return {int(match[1]): path for path, match in found.items() if match is not None}


def remove_of_gone(run_dir: Path, kind: str) -> None:
    """Remove those of processes that are gone: a container that starts again has other ids.

    Raises:
        OSError: the directory cannot be used.
    """
    for pid, path in find_files(run_dir, kind).items():
        if not Path(f"/proc/{pid}").exists():
            path.unlink(missing_ok=True)
