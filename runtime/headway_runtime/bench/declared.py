"""What a request says of itself over HTTP: in its body, and in headers of whoever is trusted."""

from __future__ import annotations

from headway_runtime.bench.workload import Request
from headway_runtime.exchange.declaration import (
    CHILDREN_KEY,
    CLASS_KEY,
    DEADLINE_KEY,
    NODE_KEY,
    PARENTS_KEY,
    PROGRAM_KEY,
)

TENANT_HEADER = "X-Headway-Tenant"
"""Believed where the policy has ``trust_headers``."""


def declaration(request: Request) -> dict[str, str | float | list[str]]:
    """Its ``vllm_xargs``."""
    told: dict[str, str | float | list[str]] = {CLASS_KEY: request.class_name}
    call = request.call
    if call is None:
        return told
    told[PROGRAM_KEY] = call.program
    if call.node:
        told[NODE_KEY] = call.node
    if call.parents:
        told[PARENTS_KEY] = list(call.parents)
    if call.children is not None:
        told[CHILDREN_KEY] = list(call.children)
    if call.deadline_s is not None:
        told[DEADLINE_KEY] = call.deadline_s
    return told


def headers(request: Request) -> dict[str, str]:
    """Its headers."""
    return {TENANT_HEADER: request.tenant} if request.tenant else {}
