"""The check in the engine's image before the engine is started."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headway_runtime.preflight import check as preflight
from headway_runtime.preflight.engine_flags import read_known_flags, unknown_flags
from headway_runtime.preflight.engine_install import EngineInstall, check_version
from headway_runtime.preflight.finding import Finding, Problem
from headway_runtime.preflight.model import ModelReference, check_model, model_reference
from tests.unit.runtime.engines import write_vllm


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Any:
    found = read_known_flags(write_vllm(tmp_path_factory.mktemp("engine")))
    assert found is not None
    return found


@pytest.fixture
def model(tmp_path: Path) -> Any:
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "config.json").write_text("{}")
    return directory


def run(tmp_path: Path, *arguments: str, environment: dict[str, str] | None = None) -> Any:
    """The check as a pod runs it; exit code and termination message."""
    log = tmp_path / "termination-log"
    ran = subprocess.run(
        [sys.executable, "-I", preflight.__file__, "--termination-log", str(log), "--", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path), **(environment or {})},
    )
    # A fault of the check itself lets everything pass.
    assert "Traceback" not in ran.stderr
    return ran.returncode, json.loads(log.read_text()) if log.exists() else None


@pytest.mark.parametrize(
    "argument",
    [
        "--model", "--max-model-len=5", "--max_model_len", "--enforce-eager", "--port",
        "--headless",
        "--no-async-scheduling", "--no_async_scheduling", "--lora-modules", "--tool_call_parser=x",
        "-tp", "-tp=2", "-q", "-qawq", "-O3", "-O", "-cc.mode=3", "--compilation-config.mode", "-h",
        "--compilation-config.pass_config.x+=1,2", "--max-model", "--enforce", "--no-async",
    ],
)  # fmt: skip
def test_what_vllm_takes_is_taken(known: Any, argument: str) -> None:
    assert list(unknown_flags([argument], known)) == []


@pytest.mark.parametrize(
    ("argument", "flag", "meant"),
    [
        ("--max-modle-len=5", "--max-modle-len", "--max-model-len"),
        ("--enforce-eagre", "--enforce-eagre", "--enforce-eager"),
        ("--not-a-flag", "--not-a-flag", None),
        ("--no-such", "--no-such", None),
        ("-zz", "-zz", None),
        ("--modle.x=1", "--modle.x", "--model"),
    ],
)
def test_what_vllm_does_not_take_is_found(known: Any, argument: str, flag: str, meant: Any) -> None:
    assert list(unknown_flags(["--model", "m", argument], known)) == [flag]
    assert known.closest(argument) == meant


@pytest.mark.parametrize(
    "arguments",
    [
        ["--max-model-len", "-1"],
        ["--max-model-len", "-.5"],
        ["--served-model-name", "-"],
        ["--compilation-config", '{"a": "--x"}'],
        ["--served-model-name", "--it has spaces"],
        ["--model", "m", "--", "--anything"],
    ],
)
def test_values_are_not_taken_for_flags(known: Any, arguments: list[str]) -> None:
    assert list(unknown_flags(arguments, known)) == []


def test_a_misspelt_flag_with_json_behind_it_is_found(known: Any) -> None:
    assert list(unknown_flags(["--model=m", '--compilation-confg={"a": 1}'], known)) == [
        "--compilation-confg"
    ]


@pytest.mark.parametrize("flags", [0, 10])
def test_sources_with_too_few_flags_are_not_believed(tmp_path: Path, flags: Any) -> None:
    assert read_known_flags(write_vllm(tmp_path, flags=flags)) is None


def test_sources_that_compute_names_of_flags_are_not_believed(tmp_path: Path) -> None:
    package = write_vllm(tmp_path)
    with (package / "engine" / "arg_utils.py").open("a") as file:
        file.write('    group.add_argument(f"--{name}")\n')
    assert read_known_flags(package) is None


@pytest.mark.parametrize(
    "version", ["0.26.0", "0.33.0", "0.34.1", "1.2.0", "0.1.dev5+g123", "unknown"]
)
def test_a_version_that_can_be_started_passes(tmp_path: Path, version: str) -> None:
    assert check_version(EngineInstall(write_vllm(tmp_path), version, extensible=False)) is None


@pytest.mark.parametrize("version", ["0.25.9", "0.9.2", "0.25.0+cu128"])
def test_an_old_version_is_refused_by_name(tmp_path: Path, version: str) -> None:
    found = check_version(EngineInstall(write_vllm(tmp_path), version, extensible=False))
    assert found.problem is Problem.UNSUPPORTED_ENGINE_VERSION
    assert found.captures["version"] == version


def test_a_version_without_the_modules_we_start_is_refused(tmp_path: Path) -> None:
    package = write_vllm(tmp_path)
    (package / "entrypoints" / "openai" / "api_server.py").unlink()
    assert check_version(EngineInstall(package, "0.40.0", extensible=False)) is not None


def test_a_good_command_line_passes_without_importing_vllm(tmp_path: Path, model: Any) -> None:
    write_vllm(tmp_path)  # importing it raises
    assert run(tmp_path, "--model", str(model), "--max-model-len", "5") == (0, None)


def test_an_unknown_flag_is_named_with_version_and_suggestion(tmp_path: Path, model: Any) -> None:
    write_vllm(tmp_path, version="0.31.1")
    assert run(tmp_path, "--model", str(model), "--max-modle-len", "5") == (
        1,
        {
            "reason": "UnknownEngineFlag",
            "captures": {
                "flag": "--max-modle-len",
                "suggestion": "--max-model-len",
                "version": "0.31.1",
            },
        },
    )


@pytest.mark.parametrize(
    "flag", ["--max-num-se", "--mod=x", "--no-async", "--tensor-par", "--head"]
)
def test_a_shortened_reserved_flag_is_refused(tmp_path: Path, model: Any, flag: str) -> None:
    write_vllm(tmp_path)
    code, message = run(tmp_path, "--model", str(model), flag)
    assert (code, message["reason"]) == (1, "ReservedEngineFlag")


def test_a_flag_that_needs_another_is_refused_without_it(tmp_path: Path, model: Any) -> None:
    write_vllm(tmp_path)
    code, message = run(tmp_path, "--model", str(model), "--enable-auto-tool-choice")
    assert (code, message["reason"]) == (1, "ContradictoryEngineFlags")
    for needed in ("--tool-call-parser=x", "--tool-call-p=x"):
        both = ("--enable-auto-tool-choice", needed)
        assert run(tmp_path, "--model", str(model), *both)[0] == 0


def test_an_image_without_vllm_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "find_engine", lambda: None)
    assert list(preflight.findings([])) == [Finding(Problem.ENGINE_NOT_FOUND)]


def test_a_fault_of_the_check_lets_the_engine_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(preflight, "find_engine", lambda: 1 / 0)
    assert preflight.main(["--", "--model", "x"]) == 0
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_unreadable_sources_let_the_flags_pass(tmp_path: Path, model: Any) -> None:
    package = write_vllm(tmp_path)
    (package / "engine" / "arg_utils.py").write_text("syntax error here")
    assert run(tmp_path, "--model", str(model), "--whatever") == (0, None)


def test_platform_plugins_may_have_flags_of_their_own(tmp_path: Path, model: Any) -> None:
    write_vllm(tmp_path)
    metadata = tmp_path / "plugin-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: plugin\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[vllm.platform_plugins]\nx = x:y\n")
    assert run(tmp_path, "--model", str(model), "--whatever") == (0, None)


def test_the_message_is_bounded_printable_and_one_line() -> None:
    text = Finding(Problem.MODEL_NOT_FOUND, {"path": "/\x1b[31m\nx" + "y" * 999}).to_json()
    assert len(text) < 400
    assert text.isascii()
    assert text.isprintable()


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (["config.json", "model.safetensors"], None),
        (["params.json"], None),
        (["model.gguf"], None),
        (["readme.txt"], Problem.MODEL_INVALID),
        ([], Problem.MODEL_INVALID),
    ],
)
def test_a_directory_must_hold_a_model(tmp_path: Path, files: list[str], problem: Any) -> None:
    for name in files:
        (tmp_path / name).touch()
    found = check_model(ModelReference(str(tmp_path)), {})
    assert (found and found.problem) == problem


def test_a_configuration_kept_elsewhere_is_not_missed(tmp_path: Path) -> None:
    arguments = ["--model", str(tmp_path), "--hf-config-path", "/elsewhere"]
    assert check_model(model_reference(arguments), {}) is None


def test_a_missing_path_is_named() -> None:
    found = check_model(ModelReference("/no/such/model"), {})
    assert found == Finding(Problem.MODEL_NOT_FOUND, {"path": "/no/such/model"})


def test_a_path_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "iterdir", denied)
    assert check_model(ModelReference(str(tmp_path)), {}).problem is Problem.MODEL_NOT_READABLE


def test_a_single_gguf_file_is_a_model(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").touch()
    (tmp_path / "model.txt").touch()
    assert check_model(ModelReference(str(tmp_path / "model.gguf")), {}) is None
    assert (
        check_model(ModelReference(str(tmp_path / "model.txt")), {}).problem
        is Problem.MODEL_INVALID
    )


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize(
    "variable", ["HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME", "HOME"]
)
def test_offline_the_cache_decides(tmp_path: Path, cached: bool, variable: str) -> None:
    hub = {
        "HF_HOME": "hub",
        "HF_HUB_CACHE": ".",
        "HUGGINGFACE_HUB_CACHE": ".",
        "XDG_CACHE_HOME": "huggingface/hub",
    }
    directory = tmp_path / hub.get(variable, ".cache/huggingface/hub")
    if cached:
        (directory / "models--org--name" / "snapshots" / "abc").mkdir(parents=True)
    found = check_model(
        ModelReference("org/name"), {"HF_HUB_OFFLINE": "1", variable: str(tmp_path)}
    )
    assert (found is None) == cached


@contextmanager
def hub(*answers: tuple[int, str | None]) -> Any:
    """A model hub that gives these answers, status and error code, one after another."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            asked.append((self.path, self.headers.get("Authorization")))
            status, code = answers[min(len(asked), len(answers)) - 1]
            self.send_response(status)
            if code:
                self.send_header("X-Error-Code", code)
            if status in (302, 307):
                self.send_header("Location", "http://127.0.0.1:1/never")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ([(200, None)], None),
        ([(302, None)], None),
        ([(307, None)], None),
        ([(404, "EntryNotFound")], None),
        ([(404, "RepoNotFound"), (404, "RepoNotFound")], Problem.MODEL_NOT_FOUND),
        ([(404, "RevisionNotFound"), (404, "RevisionNotFound")], Problem.MODEL_NOT_FOUND),
        ([(404, None), (200, None)], None),
        ([(401, "RepoNotFound")], Problem.MODEL_ACCESS_DENIED),
        ([(403, "GatedRepo")], Problem.MODEL_ACCESS_DENIED),
        ([(500, None)], None),
        ([(429, None)], None),
    ],
)
def test_online_the_hub_decides_where_it_is_certain(
    tmp_path: Path, answers: Any, problem: Any
) -> None:
    with hub(*answers) as (endpoint, asked):
        environment = {"HF_ENDPOINT": endpoint, "HOME": str(tmp_path), "HF_TOKEN": "t"}
        found = check_model(ModelReference("org/name", "v1"), environment)
    assert (found and found.problem) == problem
    assert asked[0] == ("/org/name/resolve/v1/config.json", "Bearer t")


@pytest.mark.parametrize(
    "named",
    [
        {"HF_TOKEN": "secret\n"},
        {"HUGGING_FACE_HUB_TOKEN": "secret"},
        {"HF_TOKEN_PATH": "{tmp}/elsewhere"},
        {"HF_HOME": "{tmp}/home"},
    ],
)
def test_the_token_is_the_one_that_the_engine_would_send(
    tmp_path: Path, named: dict[str, str]
) -> None:
    (tmp_path / "home").mkdir()
    for path in (tmp_path / "elsewhere", tmp_path / "home" / "token"):
        path.write_text("secret\n")
    environment = {key: value.format(tmp=tmp_path) for key, value in named.items()}
    with hub((200, None)) as (endpoint, asked):
        check_model(ModelReference("org/name"), {"HF_ENDPOINT": endpoint, **environment})
    assert asked[0][1] == "Bearer secret"


def test_a_token_on_the_command_line_may_open_what_is_closed_without_it(tmp_path: Path) -> None:
    arguments = ["--model", "org/name", "--hf-token", "t"]
    with hub((401, "RepoNotFound")) as (endpoint, _):
        environment = {"HF_ENDPOINT": endpoint, "HOME": str(tmp_path)}
        assert check_model(model_reference(arguments), environment) is None


def test_a_network_that_does_not_answer_proves_nothing(tmp_path: Path) -> None:
    environment = {"HF_ENDPOINT": "http://127.0.0.1:1", "HOME": str(tmp_path)}
    assert check_model(ModelReference("org/name"), environment) is None


@pytest.mark.parametrize("name", ["s3://bucket/model", "gs://x", "org/name:Q4_K_M", "a b"])
def test_what_is_no_name_on_the_hub_is_left_to_the_engine(name: str) -> None:
    assert check_model(ModelReference(name), {"HF_HUB_OFFLINE": "1"}) is None
