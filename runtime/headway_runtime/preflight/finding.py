"""What keeps an engine from running, in the form Kubernetes hands to the operator."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

TERMINATION_LOG = Path("/dev/termination-log")
"""Where Kubernetes takes a container's termination message from."""

_MAX_CAPTURE_CHARACTERS = 256
_UNPRINTABLE = re.compile(r"[^ -~]")


class Problem(str, enum.Enum):
    """Why the engine would not start."""

    ENGINE_NOT_FOUND = "EngineNotFound"
    """The image's Python finds no vLLM."""
    UNSUPPORTED_ENGINE_VERSION = "UnsupportedEngineVersion"
    """The image's vLLM is too old, or lacks the modules the engine is started from."""
    UNKNOWN_ENGINE_FLAG = "UnknownEngineFlag"
    """vLLM of this version has no such flag."""
    RESERVED_ENGINE_FLAG = "ReservedEngineFlag"
    """A shortened form of a flag that Headway sets itself: vLLM would take it and override ours."""
    CONTRADICTORY_ENGINE_FLAGS = "ContradictoryEngineFlags"
    """vLLM of this version refuses the flag without another one."""
    MODEL_NOT_FOUND = "ModelNotFound"
    """There is nothing at the path, or the hub has no such model or revision."""
    MODEL_NOT_READABLE = "ModelNotReadable"
    """The pod's user may not read the path."""
    MODEL_INVALID = "ModelInvalid"
    """What is at the path is no model."""
    MODEL_ACCESS_DENIED = "ModelAccessDenied"
    """The hub refuses access with the token given, or without one."""
    ENGINE_OUT_OF_MEMORY = "EngineOutOfMemory"
    """Told by the engine itself: it asks for more memory than is free."""
    KV_CACHE_TOO_SMALL = "KVCacheTooSmall"
    """Told by the engine itself: beside the model there is too little left for a KV cache."""
    MODEL_DOWNLOAD_FAILED = "ModelDownloadFailed"
    """Told by the engine itself: the hub did not give it what it asked for."""


@dataclass(frozen=True)
class Finding:
    """One reason why the engine would not start.

    Attributes:
        problem: what is wrong.
        captures: facts for the message, such as flag, version or path; bounded, printable ASCII.
    """

    problem: Problem
    captures: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """The termination message: one line."""
        captures = {
            name: _UNPRINTABLE.sub("?", text)[:_MAX_CAPTURE_CHARACTERS]
            for name, text in self.captures.items()
        }
        return json.dumps({"reason": self.problem.value, "captures": captures}, sort_keys=True)
