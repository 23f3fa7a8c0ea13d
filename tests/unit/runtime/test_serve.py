"""vLLM's own command line is found, whatever the distribution that brought it is called."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.lab.paths import REPOSITORY

COMMAND = """
import importlib.metadata
import sys

def main():
    print(importlib.metadata.version("vllm"), *sys.argv[1:])
    try:
        from importlib.metadata import version
        print("platforms are told", version("vllm"))
    except importlib.metadata.PackageNotFoundError:
        print("platforms are told nothing")
"""


def started(directory: Path, *arguments: str) -> list[str]:
    """What a vLLM that lies there prints."""
    for package in ("vllm", "vllm/entrypoints", "vllm/entrypoints/cli"):
        (directory / package).mkdir(exist_ok=True)
        (directory / package / "__init__.py").touch()
    (directory / "vllm" / "__init__.py").write_text('__version__ = "0.32.0"\n')
    (directory / "vllm" / "entrypoints" / "cli" / "main.py").write_text(COMMAND)
    (directory / "vllm" / "entrypoints" / "cli" / "serve.py").touch()
    path = f"{directory}:{REPOSITORY / 'runtime'}"
    done = subprocess.run(
        # Without what is installed here: that has a vLLM too.
        [sys.executable, "-S", "-m", "headway_runtime.executors.vllm.serve", *arguments],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_without_a_distribution_of_that_name_the_package_tells_the_version(tmp_path: Path) -> None:
    told = started(tmp_path, "--model", "m", "--api-server-count", "2")
    assert told == [
        "0.32.0 serve --model m --api-server-count 2",
        # By that question vLLM tells platforms apart.
        "platforms are told nothing",
    ]


@pytest.mark.parametrize("version", ["0.26.0", "0.33.1"])
def test_otherwise_the_distribution_does(tmp_path: Path, version: str) -> None:
    metadata = tmp_path / f"vllm-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
    assert started(tmp_path) == [f"{version} serve", f"platforms are told {version}"]
