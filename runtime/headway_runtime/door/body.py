"""A request's body: what it declares, and the same body with what the door has to say. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headway_runtime.door.prompt_size import prompt_tokens
from headway_runtime.exchange.declaration import (
    CLASS_KEY,
    FINGERPRINT_KEY,
    MAX_ID_CHARACTERS,
    TENANT_KEY,
)

_ARGUMENTS = "vllm_xargs"
_SAMPLING = "sampling_params"
_EXTRA = "extra_args"
_NOT_FOR_CLIENTS = (TENANT_KEY, FINGERPRINT_KEY)


class UnreadableBodyError(ValueError):
    """A body that vLLM will refuse, or that is not as it should be. It is left as it is."""


@dataclass(frozen=True)
class Body:
    """A request's body.

    Attributes:
        raw: its bytes.
        document: what is in it.
        in_sampling: whether its arguments are within its sampling parameters.
        arguments: arguments for extensions that the client gave.
    """

    raw: bytes
    document: dict[str, Any]
    in_sampling: bool
    arguments: dict[str, Any]

    @property
    def class_name(self) -> str | None:
        """The class it names, None where it names none."""
        name = self.arguments.get(CLASS_KEY)
        return name if isinstance(name, str) and len(name) <= MAX_ID_CHARACTERS else None

    @cached_property
    def prompt_tokens(self) -> int:
        """Length of its prompt, or an estimate."""
        return prompt_tokens(self.document, len(self.raw))

    def with_own(self, own: Mapping[str, str]) -> bytes:
        """Its bytes with these arguments, and without those that are not for clients to write.

        They are the same bytes where nothing is to change. Arguments of a body that had none are
        put in front, which costs a copy; else the whole document is written again, since of two
        equal keys the last counts.
        """
        merged = {
            key: value for key, value in self.arguments.items() if key not in _NOT_FOR_CLIENTS
        }
        merged.update(own)
        if merged == self.arguments:
            return self.raw
        if not self.in_sampling and _ARGUMENTS not in self.document and _is_utf8(self.raw):
            return _in_front(self.raw, merged, is_alone=not self.document)
        return _dumped(self._document_with(merged))

    def _document_with(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if self.in_sampling:
            sampling = {**self.document[_SAMPLING], _EXTRA: arguments}
            return {**self.document, _SAMPLING: sampling}
        return {**self.document, _ARGUMENTS: arguments}


def read_body(raw: bytes, *, in_sampling: bool) -> Body:
    """Read a body.

    Args:
        raw: its bytes.
        in_sampling: whether its arguments belong within its sampling parameters.

    Raises:
        UnreadableBodyError: it is no JSON object, or what should hold its arguments is none.
    """
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        # The error's text would be that of the body.
        raise UnreadableBodyError from None
    if not isinstance(document, dict):
        raise UnreadableBodyError
    holder = document.get(_SAMPLING) if in_sampling else document
    if not isinstance(holder, dict):
        raise UnreadableBodyError
    arguments = holder.get(_EXTRA if in_sampling else _ARGUMENTS)
    if arguments is not None and not isinstance(arguments, dict):
        raise UnreadableBodyError
    return Body(raw, document, in_sampling, arguments or {})


def _in_front(raw: bytes, arguments: dict[str, Any], *, is_alone: bool) -> bytes:
    brace = raw.index(b"{") + 1
    entry = b'"%s":%s' % (_ARGUMENTS.encode(), _dumped(arguments))
    return b"".join((raw[:brace], entry, b"" if is_alone else b",", raw[brace:]))


def _is_utf8(raw: bytes) -> bool:
    """Whether it is UTF-8; JSON may be UTF-16 or UTF-32 as well."""
    return json.detect_encoding(raw).startswith("utf-8")


def _dumped(document: dict[str, Any]) -> bytes:
    # With escapes: half a surrogate pair has no UTF-8.
    return json.dumps(document, separators=(",", ":")).encode("ascii")
