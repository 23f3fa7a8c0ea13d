"""Reads policies, checking every field."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from headway_runtime.policy.bounds import (
    FORMAT_VERSION,
    MAX_CLASSES,
    MAX_FAIRNESS_WINDOW,
    MAX_PAYLOAD_BYTES,
    MAX_QUEUED,
    MAX_TENANTS,
    MAX_THETA_PPM,
    MAX_WEIGHT,
    OLDEST_READABLE_VERSION,
    PERCENT,
    TENANTS_SINCE,
)
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
from headway_runtime.policy.fields import Fields, PolicyFormatError, parse_object

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_UID = re.compile(r"[-A-Za-z0-9]{1,64}\Z")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


def decode(payload: bytes) -> Policy:
    """Read a policy document, checking every field.

    Raises:
        PolicyFormatError: too large, not JSON, a version this release cannot read, a missing,
            unknown or out-of-range field. The message names it.
    """
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise PolicyFormatError(f"policy: {len(payload)} bytes, at most {MAX_PAYLOAD_BYTES}")
    fields = Fields("policy", parse_object("policy", payload))
    version = fields.integer("version", minimum=1)
    if not OLDEST_READABLE_VERSION <= version <= FORMAT_VERSION:
        raise PolicyFormatError(
            f"policy.version: {version} is not readable here, "
            f"only {OLDEST_READABLE_VERSION} to {FORMAT_VERSION}"
        )
    policy = _policy_2(fields) if version >= TENANTS_SINCE else _policy_1(fields, _class_1)
    fields.refuse_unknown()
    _check(policy)
    return policy


def _policy_1(fields: Fields, read_class: Callable[[Fields], TrafficClass]) -> Policy:
    return Policy(
        scope=Scope(fields.text("serviceUid", _UID), fields.optional_text("podUid", _UID)),
        stamp=Stamp(
            generation=fields.integer("generation", minimum=0),
            epoch=fields.integer("epoch", minimum=0),
            counter=fields.integer("counter", minimum=0),
        ),
        mode=fields.one_of("mode", Mode),
        max_batch_size=fields.optional_integer("maxBatchSize", minimum=1),
        token_budget=fields.optional_integer("tokenBudget", minimum=1),
        theta_ppm=fields.optional_integer("thetaPpm", minimum=0, maximum=MAX_THETA_PPM),
        classes=fields.each("classes", MAX_CLASSES, read_class),
        default_class=fields.optional_text("defaultClass", _NAME),
    )


def _policy_2(fields: Fields) -> Policy:
    return replace(
        _policy_1(fields, _class_2),
        tenants=fields.each("tenants", MAX_TENANTS, _tenant),
        trust_headers=fields.flag("trustHeaders"),
        fairness_window=fields.integer("fairnessWindow", minimum=1, maximum=MAX_FAIRNESS_WINDOW),
        priority=_priority(fields.within("priority")),
    )


def _class_1(fields: Fields) -> TrafficClass:
    return TrafficClass(
        name=fields.text("name", _NAME),
        ttft_ms=fields.optional_integer("ttftMs", minimum=1),
        tpot_ms=fields.optional_integer("tpotMs", minimum=1),
        deadline_s=fields.optional_integer("deadlineS", minimum=1),
        max_running=fields.optional_integer("maxRunning", minimum=1),
    )


def _class_2(fields: Fields) -> TrafficClass:
    return replace(
        _class_1(fields),
        weight=fields.integer("weight", minimum=1, maximum=MAX_WEIGHT),
        when_unmet=fields.one_of("whenUnmet", WhenUnmet),
        max_queued=fields.optional_integer("maxQueued", minimum=1, maximum=MAX_QUEUED),
    )


def _tenant(fields: Fields) -> Tenant:
    return Tenant(
        name=fields.text("name", _NAME),
        weight=fields.integer("weight", minimum=1, maximum=MAX_WEIGHT),
        key_sha256=fields.optional_text("keySha256", _SHA256),
    )


def _priority(fields: Fields) -> PriorityCoefficients:
    coefficients = PriorityCoefficients(
        base=fields.integer("basePercent", minimum=0, maximum=PERCENT),
        depth=fields.integer("depthPercent", minimum=0, maximum=PERCENT),
        progress=fields.integer("progressPercent", minimum=0, maximum=PERCENT),
        learn=fields.flag("learn"),
    )
    fields.refuse_unknown()
    return coefficients


def _check(policy: Policy) -> None:
    """What holds between fields."""
    names = [each.name for each in policy.classes]
    _check_unique("policy.classes: names", names)
    _check_unique("policy.tenants: names", [each.name for each in policy.tenants])
    keys = [each.key_sha256 for each in policy.tenants if each.key_sha256 is not None]
    _check_unique("policy.tenants: key hashes", keys)
    if policy.default_class is not None and policy.default_class not in names:
        raise PolicyFormatError(
            f"policy.defaultClass: {policy.default_class!r} is none of policy.classes"
        )
    coefficients = policy.priority
    if coefficients.base + coefficients.depth + coefficients.progress != PERCENT:
        raise PolicyFormatError(f"policy.priority: coefficients must add up to {PERCENT}")


def _check_unique(what: str, values: Sequence[str]) -> None:
    if len(set(values)) != len(values):
        raise PolicyFormatError(f"{what} must be unique")
