"""Security contexts that satisfy the *restricted* pod security profile."""

from __future__ import annotations

from typing import Any

from headway_operator.api.engine import Engine

_DEFAULT_ID = 65532
"""The uid and gid that images call ``nonroot``."""


def pod_security_context(engine: Engine) -> dict[str, Any]:
    """User and groups of a pod; left to the platform where it assigns them (OpenShift)."""
    profile = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    if engine.pod_security == "PlatformAssigned":
        return profile
    user = engine.run_as_user or _DEFAULT_ID
    return {
        **profile,
        "runAsUser": user,
        "runAsGroup": user,
        "fsGroup": engine.fs_group or _DEFAULT_ID,
        "fsGroupChangePolicy": "OnRootMismatch",
    }


def container_security_context(*, read_only_root: bool) -> dict[str, Any]:
    """What every container gives up."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": read_only_root,
    }
