"""Debian's Python, for which images and engine environment are made, and uv."""

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from .commands import run, system_environment
from .errors import LabError

# The images' Python comes from the same Debian release (see base_layer), so an environment that is
# made here runs there, where the same path is its interpreter.
SYSTEM_PYTHON = Path("/usr/bin/python3")
_IMAGE_VERSION = "3.11"


def system_python_version() -> str:
    """The exact version of Debian's Python.

    Raises LabError when it is not the one of the images.
    """
    version = run([SYSTEM_PYTHON, "--version"]).split()[-1]
    if not version.startswith(f"{_IMAGE_VERSION}."):
        raise LabError(
            f"{SYSTEM_PYTHON} is {version}, the images have {_IMAGE_VERSION}: use Debian bookworm"
        )
    return version


def find_uv() -> Path:
    """Find uv beside the running interpreter, else on PATH."""
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        raise LabError("uv is missing: `pip install uv` into the environment that runs this")
    return Path(found)


def compile_python(python: Path, directories: Iterable[Path], *options: str) -> None:
    """Compile all modules below the directories.

    Modules that do not compile are passed over (exit code 1): packages ship templates and tests
    that are not valid Python.
    """
    environment = system_environment()
    # It stops compileall from writing anything, without an error.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    run(
        [python, "-m", "compileall", "-qq", "-j", "0", *options, *directories],
        environment=environment,
        accept=(0, 1),
    )
