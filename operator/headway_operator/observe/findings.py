"""What the preflight check or the engine itself found: from its termination message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from string import Template
from typing import Any, NamedTuple

from headway_operator.observe.problems import Problem, Tier, shown


class _Finding(NamedTuple):
    """How a finding is told, and what each of its captures must look like.

    Attributes:
        text: the message.
        captures: kinds of the captures in it, by name.
        hint: added where the capture ``suggestion`` was given and is a flag.
        tier: how it is dealt with.
    """

    text: Template
    captures: Mapping[str, str]
    hint: Template = Template("")
    tier: Tier = Tier.BAD_DATA


FINDINGS: Mapping[str, _Finding] = {
    "UnknownEngineFlag": _Finding(
        Template(
            "vLLM $version does not know the flag $flag: remove it from engine.args "
            "or use another engine.image"
        ),
        {"version": "version", "flag": "flag"},
        Template(". Did you mean $suggestion?"),
    ),
    "ReservedEngineFlag": _Finding(
        Template(
            "$flag in engine.args is short for $full, which Headway sets: remove it and use the "
            "field of engine, model or scheduling instead"
        ),
        {"flag": "flag", "full": "flag"},
    ),
    "ContradictoryEngineFlags": _Finding(
        Template("vLLM $version refuses $flag without $needs: add it to engine.args"),
        {"version": "version", "flag": "flag", "needs": "flag"},
    ),
    "UnsupportedEngineVersion": _Finding(
        Template(
            "engine.image holds vLLM $version, but Headway drives vLLM $supported: "
            "use an image in that range"
        ),
        {"version": "version", "supported": "versions"},
    ),
    "EngineNotFound": _Finding(
        Template("engine.image holds no vLLM that its python3 can import: use a vLLM image"),
        {},
    ),
    "ModelNotFound": _Finding(
        Template("The model $path does not exist: correct model.uri"),
        {"path": "path"},
    ),
    "ModelNotReadable": _Finding(
        Template(
            "The model $path cannot be read by the pods' user: change its permissions, "
            "or engine.runAsUser and engine.fsGroup"
        ),
        {"path": "path"},
    ),
    "ModelInvalid": _Finding(
        Template("What is at $path is no model (no config.json): correct model.uri"),
        {"path": "path"},
    ),
    "ModelAccessDenied": _Finding(
        Template(
            "The hub denies access to $path: set model.tokenSecret to a token that may read it"
        ),
        {"path": "path"},
    ),
}


ENGINE_FINDINGS: Mapping[str, _Finding] = {
    "EngineOutOfMemory": _Finding(
        Template(
            "The engine asks for more memory than is free: lower --gpu-memory-utilization in "
            "engine.args (VLLM_CPU_KVCACHE_SPACE in engine.env on CPUs), or let nothing else run "
            "on its device"
        ),
        {},
        tier=Tier.RESOURCE,
    ),
    "KVCacheTooSmall": _Finding(
        Template(
            "The model leaves the engine too little memory for its KV cache: lower --max-model-len "
            "or raise --gpu-memory-utilization in engine.args (VLLM_CPU_KVCACHE_SPACE in "
            "engine.env on CPUs), use more or larger GPUs, or a smaller model"
        ),
        {},
        tier=Tier.RESOURCE,
    ),
    "ModelDownloadFailed": _Finding(
        Template(
            "The engine could not download its model (from the hub: $answer): check model.uri, "
            "model.revision and model.tokenSecret, and that the hub works and pods reach it"
        ),
        {"answer": "answer"},
        tier=Tier.TEMPORARY,
    ),
}


def preflight_problem(message: str) -> Problem | None:
    """The finding in the preflight check's message; None if it holds none of the known ones."""
    return _problem(message, FINDINGS, stalls=True)


def engine_problem(message: str, *, stalls: bool) -> Problem | None:
    """The same of what the engine left.

    Args:
        message: its termination message.
        stalls: it has ended too often to heal by itself.
    """
    return _problem(message, ENGINE_FINDINGS, stalls=stalls)


def _problem(message: str, findings: Mapping[str, _Finding], *, stalls: bool) -> Problem | None:
    finding = _parse(message)
    known = findings.get(finding["reason"]) if isinstance(finding.get("reason"), str) else None
    if known is None:
        return None
    captures = finding.get("captures")
    found = captures if isinstance(captures, dict) else {}
    told = {name: shown(kind, _text(found.get(name))) for name, kind in known.captures.items()}
    message = known.text.substitute(told) + _hint(known.hint, _text(found.get("suggestion")))
    return Problem(finding["reason"], message, known.tier, stalls=stalls)


def _hint(hint: Template, suggestion: str | None) -> str:
    flag = shown("flag", suggestion)
    return hint.substitute(suggestion=flag) if flag == suggestion else ""


def _parse(message: str) -> dict[str, Any]:
    try:
        finding = json.loads(message)
    except (ValueError, RecursionError):
        return {}
    return finding if isinstance(finding, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
