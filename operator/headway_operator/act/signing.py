"""Signs policies with keys that only the operator can read."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from headway_operator.snapshot import PublicKey
from headway_runtime.policy import Policy, SignedPolicy, encode

CURRENT = "current.pem"
PREVIOUS = "previous.pem"
_KEY_ID_DIGITS = 16


class SigningKeyError(Exception):
    """A signing key is missing or unusable; the message names the file and the remedy."""


@dataclass(frozen=True)
class SigningKey:
    """A private key and the public half that sidecars know it by."""

    private: Ed25519PrivateKey
    public: PublicKey

    def sign(self, policy: Policy) -> SignedPolicy:
        """The policy as it travels."""
        payload = encode(policy)
        return SignedPolicy(payload, self.private.sign(payload), self.public.key_id)


class KeyRing:
    """The keys in a mounted directory: the current one, and the previous one during a rotation.

    Sidecars learn a new key when their ConfigMap reaches them; until then they know the previous.
    """

    def __init__(self, directory: Path) -> None:
        """Load the keys.

        Raises:
            SigningKeyError: there is no usable current key.
        """
        self._directory = directory
        self._content: tuple[bytes, ...] = ()
        self.keys: tuple[SigningKey, ...] = ()
        self.reload()

    def reload(self) -> None:
        """Read the directory again.

        Raises:
            SigningKeyError: there is no usable current key; the keys stay as they were.
        """
        files = [self._directory / CURRENT]
        previous = self._directory / PREVIOUS
        content = tuple(
            _read(path) for path in [*files, *([previous] if previous.exists() else [])]
        )
        if content != self._content:
            paths = (files[0], previous)
            self.keys = tuple(_load(path, pem) for path, pem in zip(paths, content, strict=False))
            self._content = content

    def public_keys(self) -> tuple[PublicKey, ...]:
        """What sidecars need to verify policies."""
        return tuple(sorted((key.public for key in self.keys), key=lambda each: each.key_id))

    def sign(self, policy: Policy) -> tuple[SignedPolicy, ...]:
        """The policy signed with each key, the current one first."""
        return tuple(key.sign(policy) for key in self.keys)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        remedy = "mount the Secret with the signing key there"
        raise SigningKeyError(f"{path}: cannot be read ({error.strerror}): {remedy}") from None


def _load(path: Path, pem: bytes) -> SigningKey:
    remedy = "make one with `openssl genpkey -algorithm ed25519`"
    try:
        private = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError):
        raise SigningKeyError(f"{path}: is no unencrypted PEM private key: {remedy}") from None
    if not isinstance(private, Ed25519PrivateKey):
        raise SigningKeyError(f"{path}: is no Ed25519 key: {remedy}")
    raw = private.public_key().public_bytes_raw()
    key_id = hashlib.sha256(raw).hexdigest()[:_KEY_ID_DIGITS]
    return SigningKey(private, PublicKey(key_id, raw))
