"""Who sends a request, and what its headers say about it. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from headway_runtime.exchange.declaration import MAX_ID_CHARACTERS
from headway_runtime.policy import Policy

Headers = Sequence[tuple[bytes, bytes]]
"""As ASGI has them: names in lower case."""

_NAME = re.compile(rb"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\Z")
"""Names of classes and tenants, as the policy's format has them."""

_ID = re.compile(rb"[\x21-\x7e]{1,%d}\Z" % MAX_ID_CHARACTERS)
"""Ids of programs: anything visible."""

_UNLISTED_DIGITS = 8


class Identity(NamedTuple):
    """Who sends a request, and what trusted headers say about it.

    Attributes:
        tenant: who sends it; empty for all who cannot be told apart.
        class_name: the class that a header names, None where none does.
        program: likewise the id of its program.
    """

    tenant: str = ""
    class_name: str | None = None
    program: str | None = None


class KnownTenants(NamedTuple):
    """What a policy says about who is who.

    Attributes:
        by_key: names of tenants by the SHA-256 of their key, in lower-case hexadecimal.
        trust_headers: whether headers may name tenant, class and program.
    """

    by_key: Mapping[str, str]
    trust_headers: bool

    @classmethod
    def of(cls, policy: Policy | None) -> KnownTenants:
        """Those of this policy; nobody without one."""
        if policy is None:
            return cls({}, trust_headers=False)
        by_key = {each.key_sha256.lower(): each.name for each in policy.tenants if each.key_sha256}
        return cls(by_key, policy.trust_headers)


def key_digest(headers: Headers) -> str | None:
    """SHA-256 of the Bearer token, in hexadecimal; None without one. As vLLM reads it."""
    value = _first(headers, b"authorization")
    scheme, _, token = (value or b"").partition(b" ")
    if scheme.lower() != b"bearer" or not token:
        return None
    return hashlib.sha256(token).hexdigest()


def identify(
    headers: Headers, digest: str | None, known: KnownTenants, *, keys_are_checked: bool
) -> Identity:
    """Who sends a request.

    Args:
        headers: of the request; names that no policy could have are ignored.
        digest: of its key, see :func:`key_digest`.
        known: what the policy says.
        keys_are_checked: whether the engine lets nobody in without one of its keys. Else anybody
            could be as many tenants as there are words.
    """
    tenant = _of_key(digest, known.by_key, keys_are_checked=keys_are_checked)
    if not known.trust_headers:
        return Identity(tenant)
    return Identity(
        _told(headers, b"x-headway-tenant", _NAME.match) or tenant,
        _told(headers, b"x-headway-class", _NAME.match),
        _told(headers, b"x-headway-program", _ID.match),
    )


def _of_key(digest: str | None, by_key: Mapping[str, str], *, keys_are_checked: bool) -> str:
    if digest is None:
        return ""
    unlisted = f"key-{digest[:_UNLISTED_DIGITS]}" if keys_are_checked else ""
    return by_key.get(digest, unlisted)


def _told(headers: Headers, name: bytes, fits: Callable[[bytes], object]) -> str | None:
    value = _first(headers, name)
    return value.decode("ascii") if value is not None and fits(value) else None


def _first(headers: Headers, name: bytes) -> bytes | None:
    return next((value for key, value in headers if key == name), None)
