"""Who shares the engine of these tests, and the policies that say so."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

from headway_runtime.policy import Policy, Tenant, TrafficClass
from tests.unit.runtime import policies

KEYS = {"many": "key-of-many-1234", "few": "key-of-few-1234", "unlisted": "key-of-nobody-1234"}
"""API keys that the engine takes; the policy lists two of them."""

INTERACTIVE = TrafficClass("interactive", ttft_ms=600_000)
BATCH = TrafficClass("batch")

_counter = itertools.count(1)


def digest(key: str) -> str:
    """SHA-256 of an API key."""
    return hashlib.sha256(key.encode()).hexdigest()


def policy(**fields: Any) -> Policy:
    """Another policy: two classes, two tenants."""
    tenants = tuple(Tenant(name, key_sha256=digest(KEYS[name])) for name in ("many", "few"))
    settings = {"classes": (INTERACTIVE, BATCH), "default_class": "batch", "tenants": tenants}
    return policies.policy(1, 1, next(_counter), **{**settings, **fields})


def key(tenant: str) -> dict[str, str]:
    """The header with which somebody says who he is."""
    return {"Authorization": f"Bearer {KEYS[tenant]}"}
