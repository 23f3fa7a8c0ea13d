"""The policy document: what the operator tells running engines.

It is the only part that both sides import. A policy travels as a :class:`SignedPolicy`: the
canonical JSON of a :class:`Policy` and an Ed25519 signature over exactly those bytes. This package
knows the document and its encoding; it neither signs nor verifies, because the engine process that
also reads it has nothing but the standard library.
"""

from headway_runtime.policy.bounds import (
    FORMAT_VERSION,
    MAX_CLASSES,
    MAX_PAYLOAD_BYTES,
    MAX_TENANTS,
    MAX_THETA_PPM,
    OLDEST_VERSION,
)
from headway_runtime.policy.decoding import decode
from headway_runtime.policy.document import (
    Mode,
    Policy,
    PriorityCoefficients,
    Scope,
    Stamp,
    Tenant,
    TrafficClass,
    WhenUnmet,
)
from headway_runtime.policy.encoding import encode, within_version
from headway_runtime.policy.fields import PolicyFormatError
from headway_runtime.policy.signed import SignedPolicy

__all__ = [
    "FORMAT_VERSION",
    "MAX_CLASSES",
    "MAX_PAYLOAD_BYTES",
    "MAX_TENANTS",
    "MAX_THETA_PPM",
    "OLDEST_VERSION",
    "Mode",
    "Policy",
    "PolicyFormatError",
    "PriorityCoefficients",
    "Scope",
    "SignedPolicy",
    "Stamp",
    "Tenant",
    "TrafficClass",
    "WhenUnmet",
    "decode",
    "encode",
    "within_version",
]
