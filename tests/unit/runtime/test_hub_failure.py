"""What an engine tells of an end by a download: by which errors, and nothing of what is in them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import huggingface_hub
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError
from huggingface_hub.utils import get_session

from headway_runtime.executors.vllm.hub_failure import hub_failure
from headway_runtime.executors.vllm.last_words import LastWords
from headway_runtime.install import install

SECRET = "hf_SecretOfTheHub"  # noqa: S105 - none


@pytest.fixture(autouse=True)
def _hub_may_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where other tests of the same run have said that it may not."""
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)


@pytest.fixture
def hub() -> Iterator[tuple[str, dict[str, str]]]:
    """A hub's address, and the status and headers of its answers to everything."""
    answers = {"status": "503"}

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(int(answers["status"]))
            for name, value in answers.items():
                if name != "status":
                    self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", answers
    server.shutdown()
    server.server_close()
    thread.join()


def chain_of(attempt: Callable[[], object]) -> list[BaseException]:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - whatever the library raises
        attempt()
    chain: list[BaseException] = []
    error: BaseException | None = raised.value
    while error is not None:
        chain.append(error)
        error = error.__cause__ or error.__context__
    return chain


def download(endpoint: str, cache: Path, *, offline: bool = False) -> Callable[[], object]:
    return lambda: huggingface_hub.hf_hub_download(
        "lab/model",
        "config.json",
        endpoint=endpoint,
        cache_dir=cache,
        token=SECRET,
        local_files_only=offline,
    )


@pytest.mark.parametrize("status", ["401", "403"])
def test_what_the_hub_answers_is_told(
    hub: tuple[str, dict[str, str]], tmp_path: Path, status: str
) -> None:
    endpoint, answers = hub
    answers["status"] = status
    found = hub_failure(chain_of(download(endpoint, tmp_path)))
    assert found is not None
    told = {"reason": "ModelDownloadFailed", "captures": {"answer": f"HTTP {status}"}}
    assert json.loads(found.to_json()) == told


def test_a_hub_that_lacks_one_file_has_not_failed(
    hub: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    endpoint, answers = hub
    answers |= {"status": "404", "X-Error-Code": "EntryNotFound"}
    assert hub_failure(chain_of(download(endpoint, tmp_path))) is None


def test_files_that_were_not_asked_for_did_not_fail(tmp_path: Path) -> None:
    chain = chain_of(download("http://127.0.0.1:9", tmp_path, offline=True))
    assert isinstance(chain[0], LocalEntryNotFoundError)
    assert hub_failure(chain) is None


def test_requests_to_others_are_nothing_of_the_hub() -> None:
    chain = chain_of(lambda: get_session().get("http://127.0.0.1:9"))
    assert hub_failure(chain) is None
    assert hub_failure([OSError("We couldn't connect to the hub")]) is None


def test_an_engine_without_its_hub_leaves_a_word_and_its_traceback(tmp_path: Path) -> None:
    log, library = tmp_path / "termination-log", install(tmp_path)
    script = (
        f"import sys; sys.path.insert(0, {str(library)!r}); "
        "import huggingface_hub; from pathlib import Path; "
        "from headway_runtime.executors.vllm.last_words import LastWords; "
        f"LastWords(Path({str(log)!r})).tell_uncaught(); "
        f"huggingface_hub.HfApi(endpoint='http://127.0.0.1:9', token={SECRET!r})"
        ".model_info('lab/model')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert "Traceback" in ran.stderr
    told = {"reason": "ModelDownloadFailed", "captures": {"answer": "no answer"}}
    assert json.loads(log.read_text()) == told


def test_an_end_that_is_known_is_not_covered_by_the_one_that_follows(tmp_path: Path) -> None:
    log = tmp_path / "termination-log"
    words = LastWords(log)
    words.tell(RuntimeError("out of memory"))
    words.tell(RuntimeError("Engine core initialization failed. See root cause above."))
    assert json.loads(log.read_text())["reason"] == "EngineOutOfMemory"
