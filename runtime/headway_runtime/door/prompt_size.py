"""How long a request's prompt is, roughly, before anybody has tokenized it. Pure."""

from __future__ import annotations

from typing import Any

_BYTES_PER_TOKEN = 4
"""Of English text and code in the vocabularies of common models."""

_TEXTS = frozenset(("text", "input_text", "output_text", "refusal", "tool_use", "thinking"))
_DEEPEST = 4


def prompt_tokens(document: dict[str, Any], body_bytes: int) -> int:
    """Tokens of the prompt in a request's body: counted where they are ids, else estimated.

    Text is taken for all of the body but its media, of which nothing is known.

    Args:
        document: the body.
        body_bytes: its length.
    """
    ids = _ids(document.get("token_ids")) or _ids(document.get("prompt"))
    return ids or max(0, body_bytes - _media_bytes(document)) // _BYTES_PER_TOKEN


def _ids(value: Any) -> int:
    """Ids in a list of them, or in a list of such lists; 0 for anything else."""
    if not isinstance(value, list) or not value:
        return 0
    if isinstance(value[0], int):
        return len(value)
    if isinstance(value[0], list):
        return sum(len(each) for each in value if isinstance(each, list))
    return 0


def _media_bytes(document: dict[str, Any]) -> int:
    """Length of images, sounds and files within the messages."""
    found = 0
    for key in ("messages", "input"):
        messages = document.get(key)
        for each in messages if isinstance(messages, list) else ():
            # A batch of conversations has lists of messages.
            for message in each if isinstance(each, list) else (each,):
                if isinstance(message, dict):
                    found += sum(_media_in(part, _DEEPEST) for part in _parts(message))
    return found


def _parts(holder: dict[str, Any]) -> list[Any]:
    content = holder.get("content")
    return content if isinstance(content, list) else []


def _media_in(part: Any, deepest: int) -> int:
    if not isinstance(part, dict) or deepest == 0:
        return 0
    kind = part.get("type")
    if kind == "tool_result":
        return sum(_media_in(each, deepest - 1) for each in _parts(part))
    # A part without a type is text, or short.
    is_text = kind is None or (isinstance(kind, str) and kind in _TEXTS)
    return 0 if is_text else _characters(part, deepest)


def _characters(value: Any, deepest: int) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict) and deepest > 0:
        return sum(_characters(each, deepest - 1) for each in value.values())
    return 0
