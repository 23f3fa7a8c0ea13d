"""What is copied next to the engine."""

from __future__ import annotations

import ast
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from headway_runtime.install import ENGINE_SIDE, PACKAGE, install, main

ALLOWED = sys.stdlib_module_names | {"vllm", "numpy"}
_NEEDS_THE_SIDECARS_LIBRARIES = {"aiohttp", "cryptography", "gunicorn", "prometheus_client"}


def engine_side_files() -> list[Path]:
    named = [PACKAGE / name for name in ENGINE_SIDE]
    return [path for each in named for path in ([each] if each.is_file() else each.rglob("*.py"))]


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


@pytest.mark.parametrize(
    "path", engine_side_files(), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_the_engine_side_needs_only_what_an_engine_image_has(path: Path) -> None:
    top = {name.partition(".")[0] for name in imports(path)} - {"headway_runtime"}
    assert top <= ALLOWED


@pytest.mark.parametrize(
    "path", engine_side_files(), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_the_engine_side_needs_no_module_that_is_not_copied(path: Path) -> None:
    copied = {PACKAGE.name, f"{PACKAGE.name}.executors"} | {
        ".".join((PACKAGE.name, *each.relative_to(PACKAGE).with_suffix("").parts))
        for each in engine_side_files()
    }
    packages = {name.removesuffix(".__init__") for name in copied}
    for name in imports(path):
        if name.startswith(f"{PACKAGE.name}."):
            assert name in packages or name.rpartition(".")[0] in packages


def test_the_engine_side_is_what_the_import_rules_speak_of() -> None:
    rules = (PACKAGE.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    _, _, rule = rules.partition("inside the engine there is only")
    modules = rule.partition("source_modules = [")[2].partition("]")[0]
    ruled = {each.strip(' "\n').partition(".")[2] for each in modules.split(",") if each.strip()}
    copied = {each.partition("/")[0].removesuffix(".py") for each in ENGINE_SIDE} - {"__init__"}
    assert copied - {"drain"} == ruled - {"drain"}


def test_the_copy_runs_without_this_repository(tmp_path: Path) -> None:
    library = install(tmp_path)
    script = "import sys, headway_runtime.executors.vllm.control as c; print(c.__file__)"
    ran = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(library)!r}); {script}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.startswith(str(library))


def test_nothing_of_the_sidecar_is_copied(tmp_path: Path) -> None:
    copied = set(install(tmp_path).rglob("*.py"))
    assert copied
    for path in copied:
        assert not {n.partition(".")[0] for n in imports(path)} & _NEEDS_THE_SIDECARS_LIBRARIES


def test_a_second_run_replaces_the_first(tmp_path: Path) -> None:
    library = install(tmp_path)
    stale = library / "headway_runtime" / "stale.py"
    stale.touch()
    install(tmp_path)
    assert not stale.exists()
    assert (library / "headway_runtime" / "policy" / "__init__.py").exists()


def test_an_interrupted_run_leaves_the_earlier_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = install(tmp_path)

    def interrupted(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("headway_runtime.install.shutil.copyfile", interrupted)
    with pytest.raises(OSError, match="disk full"):
        install(tmp_path)
    assert (library / "headway_runtime" / "policy" / "__init__.py").exists()
    assert [each.name for each in tmp_path.iterdir()] == ["lib"]


def test_any_user_may_read_the_copy(tmp_path: Path) -> None:
    mask = os.umask(0o077)
    try:
        library = install(tmp_path)
    finally:
        os.umask(mask)
    for path in (library, *library.rglob("*")):
        assert path.stat().st_mode & stat.S_IROTH


def test_it_wants_one_destination(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err
    assert main([str(tmp_path)]) == 0
