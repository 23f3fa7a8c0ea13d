"""Fingerprints of requests: equal for equal requests, and of no use to anybody else.

They are keyed hashes (BLAKE2b) under a secret that never leaves the pod, so nobody can tell from
one what was asked, nor try guesses. Where requests come in, a request's fingerprint is written into
its own arguments next to a MAC, since clients could write there too and have others suspected.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from headway_runtime.exchange.tenant_seal import TenantSeal

BYTES = 12

CANONICAL_BYTES = 256 * 1024
"""Of a longer body the bytes count as they are: to put it in order would take too long."""

_MAC_BYTES = 12
_LENGTH = 2 * (BYTES + _MAC_BYTES)
_WITHOUT_EFFECT = frozenset(
    (
        *("stream", "stream_options", "user", "metadata", "request_id", "priority", "store"),
        *("safety_identifier", "prompt_cache_key", "service_tier"),
    )
)
"""What a client may say otherwise when it tries again, and does not change what is computed."""

_ARGUMENTS, _SAMPLING, _EXTRA = "vllm_xargs", "sampling_params", "extra_args"
_OWN = "headway_"


class Fingerprints:
    """Makes fingerprints, and knows those made here.

    Args:
        secret: of this pod.
    """

    def __init__(self, secret: bytes) -> None:
        self._hash_key = hmac.digest(secret, b"fingerprint", "sha256")
        self._mac_key = hmac.digest(secret, b"fingerprint of", "sha256")

    @classmethod
    def of_run(cls, run_dir: Path) -> Fingerprints:
        """Those of a run directory; whoever asks first makes its secret.

        Raises:
            OSError: the directory or the file cannot be used.
            ValueError: the file holds no secret.
        """
        return cls(TenantSeal.of_run(run_dir).secret)

    def of(self, raw: bytes, document: Mapping[str, Any]) -> bytes:
        """The fingerprint of a request.

        Args:
            raw: its body.
            document: what is in it.
        """
        said = raw
        if len(raw) <= CANONICAL_BYTES:
            # Too deeply nested to be put in order, whatever vLLM makes of that.
            with suppress(RecursionError):
                said = _canonical(document)
        return hashlib.blake2b(said, digest_size=BYTES, key=self._hash_key).digest()

    def stamped(self, fingerprint: bytes) -> str:
        """What to write for a fingerprint."""
        return (self._mac(fingerprint) + fingerprint).hex()

    def read(self, value: object) -> bytes | None:
        """The fingerprint that was written; None for whatever was not written here. Never fails."""
        if not isinstance(value, str) or len(value) != _LENGTH:
            return None
        try:
            both = bytes.fromhex(value)
        except ValueError:
            return None
        mac, fingerprint = both[:_MAC_BYTES], both[_MAC_BYTES:]
        if len(fingerprint) != BYTES or not hmac.compare_digest(mac, self._mac(fingerprint)):
            return None
        return fingerprint

    def _mac(self, fingerprint: bytes) -> bytes:
        return hmac.digest(self._mac_key, fingerprint, "sha256")[:_MAC_BYTES]


def _canonical(document: Mapping[str, Any]) -> bytes:
    """The same bytes whatever the order of its keys, and whatever has no effect."""
    said = {key: each for key, each in document.items() if key not in _WITHOUT_EFFECT}
    sampling = said.get(_SAMPLING)
    if isinstance(sampling, dict):
        said[_SAMPLING] = {**sampling, _EXTRA: _of_others(sampling.get(_EXTRA))}
    said[_ARGUMENTS] = _of_others(said.get(_ARGUMENTS))
    return json.dumps(said, sort_keys=True, separators=(",", ":")).encode()


def _of_others(arguments: object) -> object:
    """Arguments for extensions that are not ours: whose a request is changes nothing."""
    if not isinstance(arguments, dict):
        return arguments
    return {key: each for key, each in arguments.items() if not key.startswith(_OWN)} or None
