"""Whether a request inside the engine is the one that somebody asks for. Pure.

A client knows the id in its answer (``chatcmpl-7``, ``cmpl-7``, ``resp_7``) or the ``X-Request-Id``
that it sent (``7``). vLLM's own id is longer: ``1_cmpl-7-0-97395f45`` is the second choice (``1_``)
for the first prompt (``-0``) of ``cmpl-7``, with a random end that tells requests with one id
apart. These rules hold for vLLM 0.26 to 0.33.
"""

from __future__ import annotations

import re

from headway_runtime.exchange.history_record import ID_BYTES, id_bytes

_CHOICE = re.compile(r"\A\d+_")
_RANDOM_END = re.compile(r"-[0-9a-f]{8}\Z")
_BEAM = r"-[0-9a-f]{16}-beam-\d+"
_PART = re.compile(rf"[-_]\d+|{_BEAM}")
_PART_OF_CHAT = re.compile(rf"_\d+|{_BEAM}")
"""Chats and responses have no number for each prompt: a -1 there belongs to the client's id."""

_KINDS = re.compile(
    r"\A(chatcmpl-|cmpl-|resp_|embd-|classify-|score-|rerank-|pooling-|generate-tokens-"
    r"|transcribe-|translate-|rt-)"
)


def is_asked_for(request_id: str, asked: str) -> bool:
    """Whether ``asked`` means the request with this id of the engine.

    The id may have been cut to what is kept of it; then its beginning decides.
    """
    is_cut = len(id_bytes(request_id)) >= ID_BYTES
    if not asked or (not is_cut and asked not in request_id):
        return False
    whole = _CHOICE.sub("", request_id)
    if is_cut:
        return any(_begin_alike(each, asked) for each in (request_id, whole, _bare(whole)))
    # Without a random end where vLLM was told to make none.
    external = _RANDOM_END.sub("", whole)
    part = _PART_OF_CHAT if whole.startswith(("chatcmpl-", "resp_")) else _PART
    known = (request_id, whole, external, _bare(whole), _bare(external))
    return any(_is_of(each, asked, part) for each in known)


def _bare(external: str) -> str:
    """The id without the endpoint that it was made for."""
    return _KINDS.sub("", external)


def _is_of(external: str, asked: str, part: re.Pattern[str]) -> bool:
    rest = external[len(asked) :]
    return external.startswith(asked) and (not rest or bool(part.fullmatch(rest)))


def _begin_alike(cut: str, asked: str) -> bool:
    return cut.startswith(asked) or asked.startswith(cut)
