"""The envelope in which a policy travels."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass

from headway_runtime.policy.bounds import MAX_PAYLOAD_BYTES
from headway_runtime.policy.fields import Fields, PolicyFormatError, parse_object

_KEY_ID = re.compile(r"[-A-Za-z0-9_]{1,64}\Z")


@dataclass(frozen=True)
class SignedPolicy:
    """A policy as it travels.

    Attributes:
        payload: the bytes that were signed, see :func:`headway_runtime.policy.encode`.
        signature: Ed25519 signature over ``payload``, 64 bytes.
        key_id: which of the published public keys verifies it.
    """

    payload: bytes
    signature: bytes
    key_id: str

    def to_json(self) -> bytes:
        """The envelope as a JSON object with base64 fields."""
        envelope = {
            "payload": base64.b64encode(self.payload).decode("ascii"),
            "signature": base64.b64encode(self.signature).decode("ascii"),
            "keyId": self.key_id,
        }
        return json.dumps(envelope, sort_keys=True).encode("ascii")

    @classmethod
    def from_json(cls, text: bytes) -> SignedPolicy:
        """Read an envelope.

        Raises:
            PolicyFormatError: it is no JSON object of these three fields, or it is too large.
        """
        if len(text) > 2 * MAX_PAYLOAD_BYTES:
            raise PolicyFormatError(f"envelope: {len(text)} bytes, at most {2 * MAX_PAYLOAD_BYTES}")
        fields = Fields("envelope", parse_object("envelope", text))
        signed = cls(
            payload=fields.base64("payload"),
            signature=fields.base64("signature"),
            key_id=fields.text("keyId", _KEY_ID),
        )
        fields.refuse_unknown()
        return signed
