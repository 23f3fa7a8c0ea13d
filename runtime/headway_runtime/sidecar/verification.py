"""Verifies the signatures of policies with the keys that the operator publishes."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from headway_runtime.policy import SignedPolicy

KEYS_FILE = "keys.json"
MAX_KEYS = 2
"""One, and during a rotation the next."""


class UnknownKeyError(Exception):
    """A policy names a key that is not published."""


class BadSignatureError(Exception):
    """A signature that is not the named key's over these bytes."""


class KeysFormatError(ValueError):
    """A file of keys that cannot be read."""


class KeyRing:
    """The published public keys by key id."""

    def __init__(self, keys: dict[str, Ed25519PublicKey]) -> None:
        self._keys = keys

    @classmethod
    def read(cls, policy_dir: Path) -> KeyRing:
        """Read the keys.

        Raises:
            OSError: there is no such file, or it cannot be read.
            KeysFormatError: it is not ``{"keys": {"<key id>": "<base64 of the raw key>"}}`` with
                one or two keys.
        """
        text = (policy_dir / KEYS_FILE).read_bytes()
        try:
            keys: Any = json.loads(text)["keys"]
            if not 1 <= len(keys) <= MAX_KEYS:
                raise KeysFormatError(f"{KEYS_FILE}: must hold 1 to {MAX_KEYS} keys")
            return cls({str(key_id): _public_key(raw) for key_id, raw in keys.items()})
        except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
            raise KeysFormatError(f"{KEYS_FILE}: {type(error).__name__}") from error

    def verify(self, signed: SignedPolicy) -> None:
        """Check that a published key has signed exactly this payload.

        Raises:
            UnknownKeyError: the key is not published.
            BadSignatureError: the signature is not good.
        """
        key = self._keys.get(signed.key_id)
        if key is None:
            raise UnknownKeyError
        try:
            key.verify(signed.signature, signed.payload)
        except InvalidSignature:
            raise BadSignatureError from None


def _public_key(raw: str) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(base64.b64decode(raw, validate=True))
