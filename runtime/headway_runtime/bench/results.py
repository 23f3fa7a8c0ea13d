"""Results of runs, as files: one JSON document a run, in a directory or packed into one archive."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headway_runtime.bench.step_log import COLUMNS, Rows

Result = dict[str, Any]
"""See :func:`headway_runtime.bench.measure.result_of` for its fields."""

_SUFFIX = ".json"
_STEPS_SUFFIX = ".steps.npz"
_ARCHIVE_SUFFIX = ".tar.gz"


def write(folder: Path, result: Result) -> Path:
    """Write a run's result to a file named after the run.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['name']}{_SUFFIX}"
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(result, separators=(",", ":")), encoding="utf-8")
    temporary.replace(path)
    return path


def write_steps(folder: Path, name: str, steps: Rows) -> Path:
    """Write a run's step log: array ``steps``, whose columns ``columns`` names.

    Raises:
        OSError: the folder cannot be written.
    """
    path = folder / f"{name}{_STEPS_SUFFIX}"
    np.savez_compressed(path, steps=steps, columns=np.array(COLUMNS))
    return path


def read_steps(path: Path) -> Rows:
    """Read a run's step log.

    Raises:
        OSError: the file cannot be read.
        ValueError: it has other columns.
    """
    with np.load(path) as arrays:
        names = [str(name) for name in arrays["columns"]]
        if tuple(names) != COLUMNS:
            raise ValueError(f"{path}: columns {', '.join(names)}, not {', '.join(COLUMNS)}")
        steps: Rows = arrays["steps"]
    return steps


def read(paths: Sequence[Path]) -> list[Result]:
    """Results in these files, archives and directories; of several of one run the last one.

    Raises:
        OSError, tarfile.TarError, ValueError: one cannot be read.
    """
    return list({result["name"]: result for path in paths for result in _read(path)}.values())


def done(paths: Sequence[Path]) -> set[str]:
    """Names of the runs in files, archives and directories, or listed in text files, one a line.

    What does not exist has no runs.

    Raises:
        OSError, tarfile.TarError, ValueError: one cannot be read.
    """
    names: set[str] = set()
    for path in paths:
        if path.suffix == ".txt":
            names.update(path.read_text(encoding="utf-8").split())
        elif path.exists():
            names.update(result["name"] for result in _read(path))
    return names


def pack(folder: Path, archive: Path) -> None:
    """Pack a directory's results into one compressed archive.

    Raises:
        OSError: the archive cannot be written.
    """
    with tarfile.open(archive, "w:gz") as packed:
        for path in sorted([*folder.glob(f"*{_SUFFIX}"), *folder.glob(f"*{_STEPS_SUFFIX}")]):
            content = path.read_bytes()
            # No owner and no time: equal results give equal archives but for gzip's own stamp.
            entry = tarfile.TarInfo(path.name)
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))


def _read(path: Path) -> Iterator[Result]:
    if path.is_dir():
        for each in sorted([*path.glob(f"*{_SUFFIX}"), *path.glob(f"*{_ARCHIVE_SUFFIX}")]):
            yield from _read(each)
    elif path.name.endswith(_ARCHIVE_SUFFIX):
        with tarfile.open(path) as packed:
            for entry in packed:
                file = packed.extractfile(entry)
                if file is not None and entry.name.endswith(_SUFFIX):
                    yield json.loads(file.read())
    else:
        yield json.loads(path.read_text(encoding="utf-8"))
