"""vLLM puts the door around its application, and what the door writes reaches its requests."""

from __future__ import annotations

import importlib
import inspect
import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI

from headway_runtime.door.middleware import Door
from headway_runtime.exchange import policy_file
from headway_runtime.exchange.admission_board import AdmissionBoardWriter, file_name
from headway_runtime.exchange.tenant_seal import TenantSeal
from headway_runtime.executors.vllm.request_origin import origin_of
from headway_runtime.policy import Tenant, TrafficClass, WhenUnmet, encode
from headway_runtime.scheduling.admission.refusal import Board, ClassWait
from headway_runtime.scheduling.origin import Call, Origin
from tests.contract.engines import policy
from tests.contract.test_release import meant
from tests.unit.door.asgi_client import ask, scope

MINOR = int(meant().split(".")[1])
PARSERS = (
    "vllm.entrypoints.openai.cli_args",
    "vllm.entrypoints.launchers.cli_args",
    "vllm.entrypoints.common.cli_args",
)
DOOR = f"{Door.__module__}.{Door.__qualname__}"
KEY = "the-key"
DECLARED = {"headway_program": "p", "headway_parents": ["a", "b"], "headway_deadline_seconds": 9}
CALL = Call("p", "", ("a", "b"), None, 9.0)
HELLO = [{"role": "user", "content": "hello"}]


def arguments(*flags: str) -> Any:
    """What vLLM makes of these flags; its parser moved from release to release."""
    from vllm.utils.argparse_utils import FlexibleArgumentParser  # noqa: PLC0415 - it warns

    module = PARSERS[0 if MINOR <= 28 else 1 if MINOR <= 32 else 2]
    made = importlib.import_module(module).make_arg_parser(FlexibleArgumentParser())
    return made.parse_args(list(flags))


def application(*flags: str) -> FastAPI:
    """VLLM's application with its middleware and without its routes, which need an engine."""
    started = arguments("--middleware", DOOR, *flags)
    if MINOR <= 28:
        api_server = importlib.import_module("vllm.entrypoints.openai.api_server")
        app = api_server.build_app(started, ("generate",))
        app.router.routes.clear()
        return app
    register = importlib.import_module("vllm.entrypoints.serve.middleware.register")
    app = FastAPI()
    app.state.args = started
    register.init_entrypoints_middleware(started, app, ("generate",))
    return app


def protocol(name: str) -> Any:
    module, _, model = name.rpartition(".")
    return getattr(importlib.import_module(f"vllm.entrypoints.{module}.protocol"), model)


def sampling(request: Any) -> Any:
    """The parameters that the engine gets."""
    given = {"max_tokens": 1, "default_max_tokens": 1, "default_sampling_params": {}}
    wanted = inspect.signature(request.to_sampling_params).parameters
    return request.to_sampling_params(**{name: given[name] for name in wanted if name in given})


ENDPOINTS: dict[str, tuple[str, dict[str, Any], Callable[[Any], Any]]] = {
    "/v1/completions": (
        "openai.completion.CompletionRequest",
        {"prompt": "hello", "max_tokens": 1},
        sampling,
    ),
    "/v1/chat/completions": (
        "openai.chat_completion.ChatCompletionRequest",
        {"messages": HELLO},
        sampling,
    ),
    "/v1/responses": ("openai.responses.ResponsesRequest", {"input": "hello"}, sampling),
    "/v1/messages": (
        "anthropic.AnthropicMessagesRequest",
        {"model": "m", "messages": HELLO, "max_tokens": 1},
        lambda request: SimpleNamespace(extra_args=getattr(request, "vllm_xargs", None)),
    ),
    "/inference/v1/generate": (
        "scale_out.token_in_token_out.GenerateRequest",
        {"token_ids": [1, 2]},
        lambda request: request.sampling_params,
    ),
}


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADWAY_RUN_DIR", str(tmp_path))
    return tmp_path


def origins(app: FastAPI, path: str, run_dir: Path) -> list[Origin]:
    """Where the requests come from that arrive at a path, as the scheduler will find it."""
    found: list[Origin] = []
    name, _, parameters = ENDPOINTS[path]

    async def endpoint(request: Any) -> dict[str, str]:
        seen = SimpleNamespace(sampling_params=parameters(request))
        found.append(origin_of(seen, TenantSeal.of_run(run_dir)))
        return {}

    endpoint.__annotations__["request"] = protocol(name)
    app.post(path)(endpoint)
    return found


async def send(app: FastAPI, path: str, document: Any, key: str = KEY) -> int:
    body = json.dumps(document).encode()
    headers = {
        "host": "engine",
        "content-type": "application/json",
        "content-length": str(len(body)),
        "authorization": f"Bearer {key}",
    }
    asked = scope(path, headers, query_string=b"", http_version="1.1", client=None, scheme="http")
    answer = await ask(app, asked, [body])
    return int(answer[0])


def document(path: str) -> Any:
    _, plain, _ = ENDPOINTS[path]
    if path == "/inference/v1/generate":
        return {**plain, "sampling_params": {"max_tokens": 1, "extra_args": DECLARED}}
    return {**plain, "vllm_xargs": DECLARED}


@pytest.mark.parametrize("path", ENDPOINTS)
async def test_what_the_door_writes_and_clients_declare_reaches_the_engine(
    run_dir: Path, path: str
) -> None:
    app = application("--api-key", KEY)
    found = origins(app, path, run_dir)
    assert await send(app, path, document(path)) == 200
    assert await send(app, path, document(path), key="wrong") == 401
    (origin,) = found
    if path == "/v1/messages" and MINOR < 29:
        # It has no arguments for extensions there.
        assert origin == Origin()
    else:
        assert origin.call == CALL
        assert origin.tenant.startswith("key-")


async def test_a_tenant_of_the_policy_is_told_without_keys_of_the_engine(run_dir: Path) -> None:
    digest = "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"
    tenants = (Tenant("acme", key_sha256=digest),)
    policy_file.write(run_dir / policy_file.FILE_NAME, encode(policy(tenants=tenants)))
    app = application()
    found = origins(app, "/v1/completions", run_dir)
    plain = ENDPOINTS["/v1/completions"][1]
    for key in ("1", "another"):
        assert await send(app, "/v1/completions", plain, key=key) == 200
    assert [each.tenant for each in found] == ["acme", ""]


async def test_a_refused_request_never_reaches_vllm(run_dir: Path) -> None:
    shed = TrafficClass("shed", ttft_ms=100, when_unmet=WhenUnmet.SHED)
    limited = policy(classes=(shed,), default_class="shed")
    policy_file.write(run_dir / policy_file.FILE_NAME, encode(limited))
    board = AdmissionBoardWriter(run_dir / file_name(0))
    app = application("--api-key", KEY)
    found = origins(app, "/v1/completions", run_dir)
    answers = []
    for wait_s in (0.01, 5.0):
        board.write(Board(time.time(), 0.0, {"shed": ClassWait(0, wait_s, wait_s)}))
        answers.append(await send(app, "/v1/completions", document("/v1/completions")))
    assert answers == [200, 503]
    assert await send(app, "/v1/completions", document("/v1/completions"), key="wrong") == 401
    assert len(found) == 1
    board.close()
