"""What clients declare about a request in ``vllm_xargs`` of its body: keys and bounds.

What does not fit its bounds is ignored as a whole and is never an error.
"""

CLASS_KEY = "headway_class"
"""Name of the request's class of traffic."""

PROGRAM_KEY = "headway_program"
"""Id of the program that the request is a part of."""

NODE_KEY = "headway_node"
"""Name of the request in its program."""

PARENTS_KEY = "headway_parents"
"""Names of requests whose answers it needs, a list."""

CHILDREN_KEY = "headway_children"
"""Names of requests that will need its answer, a list."""

DEADLINE_KEY = "headway_deadline_seconds"
"""When the whole program is to be done, in seconds after its first request."""

TENANT_KEY = "headway_tenant"
"""Who sends it, sealed: see :mod:`headway_runtime.exchange.tenant_seal`. Not for clients to write,
and what they write there counts as nothing."""

FINGERPRINT_KEY = "headway_fingerprint"
"""Tells equal requests: see :mod:`headway_runtime.exchange.fingerprint`. Likewise."""

MAX_ID_CHARACTERS = 128
MAX_LIST_ENTRIES = 64
MAX_DEADLINE_S = 30 * 86_400
"""A program's deadline is within a month, or is none."""

MAX_TENANT_CHARACTERS = 63
