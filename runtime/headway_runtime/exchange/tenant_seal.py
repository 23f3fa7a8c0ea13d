"""Names of tenants that the scheduler can believe, though they travel in what clients write.

Where requests come in, a tenant's name is written into the request's own arguments, next to a MAC
(HMAC-SHA-256, cut to 96 bits) under a secret that only the processes of this engine know. A client
cannot make one, and one that leaks, as in a log of requests, stands for no other name.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
from pathlib import Path

from headway_runtime.exchange.declaration import MAX_TENANT_CHARACTERS

FILE_NAME = "seal"
"""Name of the secret's file in the run directory."""

_SECRET_BYTES = 16
_MAC_DIGITS = 24
_CONTENT = re.compile(rb"[0-9a-f]{%d}\Z" % (2 * _SECRET_BYTES))
_LONGEST_VALUE = _MAC_DIGITS + 1 + MAX_TENANT_CHARACTERS


class TenantSeal:
    """Seals names with one secret.

    Attributes:
        secret: the secret, from which others may be derived.

    Args:
        secret: the secret.
    """

    def __init__(self, secret: bytes) -> None:
        self.secret = secret

    @classmethod
    def of_run(cls, run_dir: Path) -> TenantSeal:
        """The seal of a run directory; whoever asks first makes its secret.

        Raises:
            OSError: the directory or the file cannot be used.
            ValueError: the file holds no secret.
        """
        path = run_dir / FILE_NAME
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            _create(path)
            content = path.read_bytes()
        if _CONTENT.match(content) is None:
            raise ValueError("the file of the seal holds no secret")
        return cls(content)

    def stamped(self, tenant: str) -> str:
        """What to write for a tenant, whose name has at most 63 characters."""
        return f"{self._mac(tenant)}:{tenant}"

    def tenant_of(self, value: object) -> str | None:
        """The tenant that was written; None for whatever was not sealed here. Never fails."""
        if not isinstance(value, str) or len(value) > _LONGEST_VALUE or not value.isascii():
            return None
        mac, colon, tenant = value.partition(":")
        return tenant if colon and hmac.compare_digest(mac, self._mac(tenant)) else None

    def _mac(self, tenant: str) -> str:
        return hmac.digest(self.secret, tenant.encode(), "sha256").hex()[:_MAC_DIGITS]


def _create(path: Path) -> None:
    """A file with a new secret, whole from the moment it is seen, unless another comes first."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            os.write(descriptor, secrets.token_hex(_SECRET_BYTES).encode())
        finally:
            os.close(descriptor)
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            return
    finally:
        temporary.unlink()
