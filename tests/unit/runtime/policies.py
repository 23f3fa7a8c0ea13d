"""Policies and keys for tests."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import strategies as st

from headway_runtime.policy import Mode, Policy, Scope, SignedPolicy, Stamp, TrafficClass, encode

SERVICE = "service-uid"
POD = "pod-uid"
PRIVATE_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
_PUBLIC = PRIVATE_KEY.public_key().public_bytes_raw()
KEY_ID = hashlib.sha256(_PUBLIC).hexdigest()[:16]


def policy(*stamp: int, pod: str | None = None, service: str = SERVICE, **fields: Any) -> Policy:
    """A policy with this stamp (generation, epoch, counter), for all pods of the service."""
    return Policy(scope=Scope(service, pod), stamp=Stamp(*(stamp or (1, 0, 0))), **fields)


def signed(unsigned: Policy) -> SignedPolicy:
    """The policy as the operator sends it."""
    payload = encode(unsigned)
    return SignedPolicy(payload, PRIVATE_KEY.sign(payload), KEY_ID)


def publish(policy_dir: Path, baseline: Policy | None) -> None:
    """Fill a directory as the ConfigMap would."""
    policy_dir.mkdir(exist_ok=True)
    keys = {KEY_ID: base64.b64encode(_PUBLIC).decode()}
    (policy_dir / "keys.json").write_text(json.dumps({"keys": keys}))
    if baseline is not None:
        (policy_dir / "baseline.json").write_bytes(encode(baseline))


stamps = st.builds(Stamp, *(st.integers(0, 3) for _ in range(3)))
policies = st.builds(
    Policy,
    scope=st.builds(Scope, st.sampled_from([SERVICE, "other"]), st.sampled_from([None, POD, "x"])),
    stamp=stamps,
    mode=st.sampled_from(Mode),
    max_batch_size=st.none() | st.integers(1, 5),
)
traffic_classes = st.none() | st.builds(
    TrafficClass,
    name=st.just("any"),
    ttft_ms=st.none() | st.integers(1, 10_000),
    deadline_s=st.none() | st.integers(1, 100),
)
