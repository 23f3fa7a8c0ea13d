"""Bounds on a policy: what no writer exceeds and no reader takes."""

from __future__ import annotations

FORMAT_VERSION = 2
"""Newest version of the document. Readers accept this one and the two before it."""

OLDEST_VERSION = 1
TENANTS_SINCE = 2
"""Version that brought tenants, weights, shedding, bounded queues and priorities."""

OLDEST_READABLE_VERSION = max(OLDEST_VERSION, FORMAT_VERSION - 2)

MAX_PAYLOAD_BYTES = 64 * 1024
"""Bound on an encoded policy; 32 classes and 64 tenants need about 20 KiB."""

MAX_CLASSES = 32
MAX_TENANTS = 64
MAX_THETA_PPM = 1_000_000
MAX_WEIGHT = 100
MAX_QUEUED = 100_000
MAX_FAIRNESS_WINDOW = 10_000
PERCENT = 100

MAX_INTEGER = 2**53 - 1
"""Largest integer every JSON reader keeps exact."""
