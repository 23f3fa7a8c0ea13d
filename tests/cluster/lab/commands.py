"""Running other programs to completion, with errors that show what they said."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from .errors import LabError

# sudo and bare service environments often lack the sbin directories (iptables, runc).
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SHOWN_CHARACTERS = 2000


def system_environment(**more: str) -> dict[str, str]:
    """The caller's environment with the system directories on PATH and `more` on top."""
    path = os.environ.get("PATH", "")
    return {**os.environ, "PATH": f"{path}:{_SYSTEM_PATH}" if path else _SYSTEM_PATH, **more}


def find_executable(name: str, remedy: str) -> Path:
    """Where the program `name` is; LabError with `remedy` when it is missing."""
    found = shutil.which(name, path=system_environment()["PATH"])
    if found is None:
        raise LabError(f"{name} is missing: {remedy}")
    return Path(found)


def run(
    argv: Sequence[str | Path],
    *,
    stdin: str | None = None,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    accept: Sequence[int] = (0,),
) -> str:
    """Run a program and return its standard output.

    Raises LabError with the end of its output when it cannot be started or its exit code is not one
    of `accept`.
    """
    command = [str(part) for part in argv]
    try:
        done = subprocess.run(
            command,
            input=stdin,
            env=dict(environment) if environment is not None else system_environment(),
            cwd=directory,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise LabError(f"cannot run {command[0]}: {error}") from error
    if done.returncode not in accept:
        said = (done.stderr + done.stdout).strip()[-_SHOWN_CHARACTERS:]
        raise LabError(f"`{' '.join(command)}` failed with exit code {done.returncode}:\n{said}")
    return done.stdout


def succeeds(argv: Sequence[str | Path], *, timeout_seconds: float = 10.0) -> bool:
    """Whether a program exists and exits with 0; its output is dropped."""
    try:
        done = subprocess.run(
            [str(part) for part in argv],
            env=system_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=timeout_seconds,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
