"""Where a vLLM request comes from: whose it is, and which program it is a part of."""

from __future__ import annotations

import math
from typing import Any

from headway_runtime.exchange.declaration import (
    CHILDREN_KEY,
    DEADLINE_KEY,
    MAX_DEADLINE_S,
    MAX_ID_CHARACTERS,
    MAX_LIST_ENTRIES,
    NODE_KEY,
    PARENTS_KEY,
    PROGRAM_KEY,
    TENANT_KEY,
)
from headway_runtime.exchange.tenant_seal import TenantSeal
from headway_runtime.scheduling.origin import Call, Origin


def origin_of(request: Any, seal: TenantSeal | None) -> Origin:
    """Where a request comes from. Never fails on what clients send, nor changes it.

    Args:
        request: vLLM's request. Its arguments are shared by all that the same body asked for.
        seal: tells tenants' names that were written where requests come in from those that clients
            wrote; without one nobody is told apart.
    """
    extra = getattr(request.sampling_params, "extra_args", None)
    if not isinstance(extra, dict):
        extra = {}
    # The attribute came with vLLM 0.28.
    session = getattr(request, "session_id", None)
    sealed = None if seal is None else seal.tenant_of(extra.get(TENANT_KEY))
    return Origin(sealed or "", _call(extra, session))


def _call(extra: dict[Any, Any], session: object) -> Call | None:
    program = _id(extra.get(PROGRAM_KEY)) or _id(session)
    if not program:
        return None
    return Call(
        program,
        _id(extra.get(NODE_KEY)),
        _ids(extra.get(PARENTS_KEY)) or (),
        _ids(extra.get(CHILDREN_KEY)),
        _deadline_s(extra.get(DEADLINE_KEY)),
    )


def _id(value: object) -> str:
    return value if isinstance(value, str) and len(value) <= MAX_ID_CHARACTERS else ""


def _ids(value: object) -> tuple[str, ...] | None:
    """Names of a list; None if it is none that can be taken."""
    if not isinstance(value, (list, tuple)) or len(value) > MAX_LIST_ENTRIES:
        return None
    ids = tuple(map(_id, value))
    return ids if all(ids) else None


def _deadline_s(value: object) -> float | None:
    # JSON's true is an integer in Python, and an integer may be too large for a float.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 < value <= MAX_DEADLINE_S and math.isfinite(value) else None
