"""Python sources of vLLM releases that are not installed, fetched once and kept in the cache.

Schedulers need none of a wheel's compiled parts, and what they import besides vLLM is installed.
"""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.lab.cache import cached_directory, digest
from tests.cluster.lab.commands import run
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.paths import Paths
from tests.cluster.lab.python_tools import find_uv

RELEASES_FILE = Path(__file__).with_name("releases.txt")

_LINE = re.compile(r"(?P<package>[a-z-]+)==(?P<version>[0-9.]+)( --hash=sha256:[0-9a-f]{64})+")
_METADATA = "METADATA"
"""Tells by its package's name that the release is one for the CPU."""


@dataclass(frozen=True)
class Release:
    """A release of vLLM.

    Attributes:
        version: as vLLM itself tells it.
        requirement: what to install, with the hashes of its wheels.
    """

    version: str
    requirement: str


def read_releases(text: str) -> tuple[Release, ...]:
    """Releases in the text of a file of requirements, one a line.

    Raises:
        ValueError: a line is not one pinned package with hashes.
    """
    lines = [line.strip() for line in text.splitlines()]
    return tuple(_release(line) for line in lines if line and not line.startswith("#"))


def sources(paths: Paths, release: Release) -> Path:
    """The directory with the release's package ``vllm``, for PYTHONPATH.

    Raises:
        LabError: it is not in the cache and cannot be fetched.
    """

    def make(target: Path) -> None:
        _fetch(release, target)
        _keep_sources(target)

    key = digest(release.requirement)
    return cached_directory(paths, f"vllm-sources-{release.version}", key, make)


def _release(line: str) -> Release:
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"not `package==version --hash=sha256:...`: {line}")
    return Release(match["version"], line)


def _fetch(release: Release, target: Path) -> None:
    # Of several hundred megabytes a tenth is kept: uv's own cache is no place for them.
    download = target / ".uv"
    install: list[str | Path] = [find_uv(), "pip", "install", "--quiet", "--cache-dir", download]
    what = ("--no-deps", "--no-build", "--require-hashes", "-r", "-")
    try:
        run(
            [*install, "--python", sys.executable, "--target", target, *what],
            stdin=release.requirement,
        )
    except LabError as error:
        raise LabError(
            f"vLLM {release.version} could not be fetched, whose scheduler is to be tested: make a "
            f"package index with this release reachable for uv (UV_DEFAULT_INDEX, UV_FIND_LINKS, "
            f"HTTPS_PROXY) and try again; it is fetched only once. {error}"
        ) from error
    shutil.rmtree(download, ignore_errors=True)


def _keep_sources(directory: Path) -> None:
    for file in directory.rglob("*"):
        is_kept = file.suffix == ".py" or file.name == _METADATA
        if not is_kept and not file.is_dir():
            file.unlink()
