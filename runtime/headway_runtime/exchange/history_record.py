"""What is told of one request: a block of a fixed size.

What requests are found by comes first, so that a reader need not unpack what it does not look for.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any, NamedTuple

from headway_runtime.exchange.block import CRC_BYTES, seal, unseal
from headway_runtime.scheduling.history.summary import RequestSummary, Yielded

RECORD_BYTES = 512

ID_BYTES = 96
"""Request ids are what clients say; longer ones are cut."""

NAME_BYTES = 63
"""Names of classes and tenants; longer ones are cut."""

_PAIRS = 3
_BODY_BYTES = RECORD_BYTES - CRC_BYTES
_KEY_FORMAT = f"4Q {ID_BYTES}s"
_FIXED_FORMAT = f"4Q 5Q 13I 2Q {_PAIRS}Q {_PAIRS}I {_PAIRS}B BB"
_KEY = struct.Struct(f"<{_KEY_FORMAT}")
_NAMES_BYTES = _BODY_BYTES - struct.calcsize(f"<{_KEY_FORMAT} {_FIXED_FORMAT}")
_BODY = struct.Struct(f"<{_KEY_FORMAT} {_FIXED_FORMAT} {_NAMES_BYTES}s")
_NO_REASON = 255
_MOST = 2**32 - 1
_COUNTED = RequestSummary._fields[16:29]
_NONE_LEFT = tuple((0,) * number for number in range(_PAIRS + 1))
_NO_REASONS_LEFT = tuple((_NO_REASON,) * number for number in range(_PAIRS + 1))


class Key(NamedTuple):
    """What a request is found by.

    Attributes:
        serial: number of the record, from 1; 0 where none was ever written.
        arrived_ns: when the request arrived, nanoseconds since the epoch.
        first_token_ns: when its first token came; 0 before.
        ended_ns: when it ended; 0 before.
        request_id: the engine's id of it, cut to :data:`ID_BYTES`.
    """

    serial: int
    arrived_ns: int
    first_token_ns: int
    ended_ns: int
    request_id: bytes


def pack_history(serial: int, told: RequestSummary) -> bytes:
    """The block of a summary. What does not fit is cut: names, and groups that are told least."""
    try:
        return seal(_pack(serial, told))
    except struct.error:
        # Counts that no request has; one of them is no reason to stop.
        counts: dict[str, Any] = {name: _count(getattr(told, name)) for name in _COUNTED}
        return seal(_pack(serial, told._replace(**counts)))


def _count(number: int) -> int:
    return number if 0 <= number <= _MOST else _MOST


def _pack(serial: int, told: RequestSummary) -> bytes:
    yielded, names = _names(told)
    reasons = told.reasons[:_PAIRS]
    spare = _PAIRS - len(reasons)
    return _BODY.pack(
        serial,
        told.arrived_ns,
        told.first_token_ns,
        told.ended_ns,
        id_bytes(told.request_id),
        told.taken_in_ns,
        told.since_ns,
        told.admitted_ns,
        told.given_up_ns,
        # Times in states, counts and totals, in their order.
        *told[11:31],
        *[each.tokens for each in yielded],
        *_NONE_LEFT[_PAIRS - len(yielded)],
        *[steps for _, steps in reasons],
        *_NONE_LEFT[spare],
        *[number for number, _ in reasons],
        *_NO_REASONS_LEFT[spare],
        told.state,
        len(yielded),
        names,
    )


def unpack_key(body: bytes, offset: int = 0) -> Key:
    """What the block that begins there is found by; it may be torn."""
    *numbers, request_id = _KEY.unpack_from(body, offset)
    return Key._make((*numbers, request_id.rstrip(b"\0")))


def unpack_history(block: bytes) -> RequestSummary:
    """The summary of a block.

    Raises:
        TornBlockError: the checksum does not match.
    """
    values: list[Any] = list(_BODY.unpack(unseal(block, _BODY_BYTES)))
    _, arrived_ns, first_token_ns, ended_ns, request_id = values[:5]
    taken_in_ns, since_ns, admitted_ns, given_up_ns = values[5:9]
    pairs = values[29:-3]
    tokens, steps, numbers = pairs[:_PAIRS], pairs[_PAIRS : 2 * _PAIRS], pairs[2 * _PAIRS :]
    state, groups, text = values[-3:]
    names = iter(text.split(b"\0"))
    class_name, tenant = _text(next(names)), _text(next(names))
    yielded = [Yielded(_text(next(names)), _text(next(names)), each) for each in tokens[:groups]]
    reasons = [pair for pair in zip(numbers, steps, strict=True) if pair[0] != _NO_REASON]
    return RequestSummary._make(
        (
            _text(request_id.rstrip(b"\0")),
            class_name,
            tenant,
            state,
            arrived_ns,
            taken_in_ns,
            since_ns,
            admitted_ns,
            first_token_ns,
            ended_ns,
            given_up_ns,
            *values[9:29],
            tuple(yielded),
            tuple(reasons),
        )
    )


def id_bytes(request_id: str) -> bytes:
    """A request id as it is written."""
    return request_id.encode(errors="replace")[:ID_BYTES]


def _names(told: RequestSummary) -> tuple[list[Yielded], bytes]:
    """The groups that fit, and the names of all: each ends in a zero byte."""
    names = _name(told.class_name) + _name(told.tenant)
    fitting = []
    for each in told.yielded[:_PAIRS]:
        more = _name(each.class_name) + _name(each.tenant)
        if len(names) + len(more) > _NAMES_BYTES:
            break
        names += more
        fitting.append(each)
    return fitting, names


@lru_cache(maxsize=256)
def _name(text: str) -> bytes:
    return text.replace("\0", "").encode(errors="replace")[:NAME_BYTES] + b"\0"


def _text(value: bytes) -> str:
    # The last character may have been cut.
    return value.decode(errors="ignore")
