"""Whether the model that the engine is to load is there, before half a minute of imports."""

from __future__ import annotations

import os
import re
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from headway_runtime.preflight.engine_flags import long_name
from headway_runtime.preflight.finding import Finding, Problem

_HUB_TIMEOUT_S = 3.0
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
_TRUE = frozenset({"1", "ON", "YES", "TRUE"})
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?\Z", re.ASCII)
_CONFIGURATIONS = ("config.json", "params.json")
_NO_SUCH_FILE = "EntryNotFound"


@dataclass(frozen=True)
class ModelReference:
    """Which model the command line names.

    Attributes:
        name: a path or a name on the hub.
        revision: on the hub.
        configured_elsewhere: whether a flag says where or how its configuration is kept.
        token_in_flag: whether a flag is about the hub's token.
    """

    name: str
    revision: str = "main"
    configured_elsewhere: bool = False
    token_in_flag: bool = False


def model_reference(arguments: Sequence[str]) -> ModelReference | None:
    """The model named by ``--model``, None without it."""
    values = _values(arguments)
    if "model" not in values:
        return None
    return ModelReference(
        name=values["model"],
        revision=values.get("revision", "main"),
        configured_elsewhere=bool({"hf-config-path", "config-format"} & values.keys()),
        token_in_flag="hf-token" in values,
    )


def check_model(model: ModelReference, environment: Mapping[str, str]) -> Finding | None:
    """Refuse a model that cannot be loaded for a reason that is certain; anything else passes."""
    if model.name.startswith(("/", "./", "../")):
        return _check_path(model)
    modelscope = environment.get("VLLM_USE_MODELSCOPE", "").upper() in _TRUE
    if not _HUB_ID.match(model.name) or Path(model.name).exists() or modelscope:
        return None
    if _in_cache(model.name, environment):
        return None
    if any(environment.get(each, "").upper() in _TRUE for each in _OFFLINE):
        return Finding(Problem.MODEL_NOT_FOUND, {"path": model.name})
    return _check_hub(model, environment)


def _values(arguments: Sequence[str]) -> dict[str, str]:
    values = {}
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if argument.startswith("--"):
            _, separator, attached = argument.partition("=")
            values[long_name(argument)] = attached if separator else following
    return values


def _check_path(model: ModelReference) -> Finding | None:
    path = Path(model.name)
    captures = {"path": model.name}
    try:
        if path.is_file():
            valid, readable = path.suffix == ".gguf", os.access(path, os.R_OK)
        else:
            found = [each for each in path.iterdir() if _configures(each)]
            valid = bool(found) or model.configured_elsewhere
            readable = all(os.access(each, os.R_OK) for each in found)
    except PermissionError:
        return Finding(Problem.MODEL_NOT_READABLE, captures)
    except OSError:
        return Finding(Problem.MODEL_NOT_FOUND, captures)
    if not readable:
        return Finding(Problem.MODEL_NOT_READABLE, captures)
    return None if valid else Finding(Problem.MODEL_INVALID, captures)


def _configures(path: Path) -> bool:
    return path.name in _CONFIGURATIONS or path.suffix == ".gguf"


def _hub_home(environment: Mapping[str, str]) -> Path:
    """Where Hugging Face's library keeps its files."""
    cache = environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME", "/")) / ".cache"
    return Path(environment.get("HF_HOME") or Path(cache) / "huggingface")


def _hub_cache(environment: Mapping[str, str]) -> Path:
    """Where it keeps what it has downloaded."""
    named = environment.get("HF_HUB_CACHE") or environment.get("HUGGINGFACE_HUB_CACHE")
    return Path(named) if named else _hub_home(environment) / "hub"


def _hub_token(environment: Mapping[str, str]) -> str | None:
    """The token that it would send: from the environment, or else from a file."""
    token = environment.get("HF_TOKEN") or environment.get("HUGGING_FACE_HUB_TOKEN")
    if not token:
        path = Path(environment.get("HF_TOKEN_PATH") or _hub_home(environment) / "token")
        try:
            token = path.read_text(encoding="utf-8")
        except (OSError, ValueError):
            return None
    return token.strip() or None


def _in_cache(name: str, environment: Mapping[str, str]) -> bool:
    snapshots = _hub_cache(environment) / f"models--{name.replace('/', '--')}" / "snapshots"
    try:
        return any(snapshots.iterdir())
    except OSError:
        return False


def _check_hub(model: ModelReference, environment: Mapping[str, str]) -> Finding | None:
    hub = environment.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    token = _hub_token(environment)
    captures = {"path": model.name, "revision": model.revision}
    status, code = _ask(f"{hub}/{model.name}/resolve/{model.revision}/config.json", token)
    if status == HTTPStatus.NOT_FOUND and code == _NO_SUCH_FILE:
        return None
    if status == HTTPStatus.NOT_FOUND:
        # Some mirrors do not tell a missing file from a missing model.
        status, _ = _ask(f"{hub}/api/models/{model.name}/revision/{model.revision}", token)
    if status == HTTPStatus.NOT_FOUND:
        return Finding(Problem.MODEL_NOT_FOUND, captures)
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN) and not model.token_in_flag:
        return Finding(Problem.MODEL_ACCESS_DENIED, captures)
    return None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect says that the model is there; following it would start a download."""

    def redirect_request(self, *_: object) -> None:
        return None


def _ask(url: str, token: str | None) -> tuple[int | None, str | None]:
    """Status and error code of the hub's answer; (None, None) when there was none."""
    request = urllib.request.Request(url, method="HEAD")  # noqa: S310 - the scheme is the user's choice
    if token:
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        opener = urllib.request.build_opener(_NoRedirect)
        with opener.open(request, timeout=_HUB_TIMEOUT_S) as response:
            return response.status, None
    except urllib.error.HTTPError as error:
        return error.code, error.headers.get("X-Error-Code")
    except (OSError, ValueError):
        # No network from here proves nothing: the engine will say it if it has none either.
        return None, None
