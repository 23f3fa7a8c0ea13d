"""Runs the contract tests on another vLLM than the installed one, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.cluster.lab.paths import REPOSITORY

CONTRACT = REPOSITORY / "tests" / "contract"
RELEASE_VARIABLE = "HEADWAY_CONTRACT_RELEASE"
"""Environment variable with the version that the tests are meant to find."""

_TEST_SECONDS = 300
_TAIL_CHARACTERS = 4000


@dataclass(frozen=True)
class Case:
    """A test that was to run.

    Attributes:
        file: name of its file, without the suffix.
        name: its name, with parameters.
        problem: why it has not passed; None if it has. One that was skipped has not.
    """

    file: str
    name: str
    problem: str | None


@dataclass(frozen=True)
class ContractRun:
    """What came of the contract tests.

    Attributes:
        cases: all tests that were collected.
        exit_code: pytest's; 1 when tests failed, more when there was something else.
        tail: the end of its output.
    """

    cases: tuple[Case, ...]
    exit_code: int
    tail: str


def run_contract(sources: Path, version: str, report: Path) -> ContractRun:
    """Run all contract tests with the vLLM in this directory; ``report`` is a file to write."""
    options = ("-q", "-p", "no:cacheprovider", "-o", f"timeout={_TEST_SECONDS}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", CONTRACT, *options, f"--junit-xml={report}"],
        cwd=REPOSITORY,
        env=_environment(sources, version),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    cases = read_report(report.read_text()) if report.exists() else ()
    return ContractRun(cases, done.returncode, done.stdout[-_TAIL_CHARACTERS:])


def read_report(text: str) -> tuple[Case, ...]:
    """The tests in a report in JUnit's format, as pytest writes it."""
    root = ET.fromstring(text)  # noqa: S314 - our own pytest has written it
    return tuple(_case(each) for each in root.iter("testcase"))


def _case(element: ET.Element) -> Case:
    # <testcase classname="tests.contract.test_arms" name="..."><failure message="...">...
    problems = [f"{each.tag}: {each.text or each.get('message')}" for each in _outcomes(element)]
    file = element.get("classname", "").rpartition(".")[2]
    return Case(file, element.get("name", ""), "\n".join(problems) or None)


def _outcomes(element: ET.Element) -> list[ET.Element]:
    return [each for each in element if each.tag in ("failure", "error", "skipped")]


def _environment(sources: Path, version: str) -> dict[str, str]:
    paths = (sources, REPOSITORY, REPOSITORY / "operator", REPOSITORY / "runtime")
    ours = {
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        RELEASE_VARIABLE: version,
        # A wheel of vLLM for GPUs would else find no platform it knows.
        "VLLM_TARGET_DEVICE": "cpu",
    }
    # What selects or reports tests of the run around this one is not meant for it.
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    return {**inherited, **ours}
