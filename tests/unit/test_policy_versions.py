"""Which version of the format a policy is written in, and what the second one added."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from headway_runtime.policy import (
    Policy,
    PolicyFormatError,
    PriorityCoefficients,
    Scope,
    Stamp,
    Tenant,
    TrafficClass,
    WhenUnmet,
    decode,
    encode,
    within_version,
)
from tests.unit.policy_documents import policies

CHAT = TrafficClass("chat", ttft_ms=500)
PLAIN = Policy(Scope("service"), Stamp(3, 2, 1), classes=(CHAT,))

HASH = "0123456789abcdef" * 4
TENANT = {"name": "team", "weight": 3, "keySha256": HASH}
RICH = replace(PLAIN, tenants=(Tenant("team", 3, HASH),))
[CLASS] = json.loads(encode(RICH))["classes"]
PRIORITY = json.loads(encode(RICH))["priority"]


@given(policies(version=1))
def test_what_the_first_version_can_say_is_written_in_it(policy: Policy) -> None:
    assert json.loads(encode(policy))["version"] == 1
    assert decode(encode(policy)) == policy


@given(policies())
def test_what_it_cannot_say_is_written_in_the_second(policy: Policy) -> None:
    plain = within_version(policy, 1)
    assert json.loads(encode(policy))["version"] == (1 if plain == policy else 2)
    assert json.loads(encode(plain))["version"] == 1
    assert within_version(policy, 2) == policy


def test_the_first_version_is_written_as_it_always_was() -> None:
    assert encode(PLAIN) == (
        b'{"classes":[{"deadlineS":null,"maxRunning":null,"name":"chat","tpotMs":null,'
        b'"ttftMs":500}],"counter":1,"defaultClass":null,"epoch":2,"generation":3,'
        b'"maxBatchSize":null,"mode":"Act","podUid":null,"serviceUid":"service","thetaPpm":null,'
        b'"tokenBudget":null,"version":1}'
    )


@pytest.mark.parametrize(
    "change",
    [
        {"tenants": (Tenant("team"),)},
        {"trust_headers": True},
        {"fairness_window": 101},
        {"priority": PriorityCoefficients(learn=True)},
        {"priority": PriorityCoefficients(60, 20, 20)},
        {"classes": (replace(CHAT, weight=2),)},
        {"classes": (replace(CHAT, when_unmet=WhenUnmet.SHED),)},
        {"classes": (replace(CHAT, max_queued=1),)},
    ],
    ids=str,
)
def test_each_new_field_alone_asks_for_the_second_version(change: dict[str, Any]) -> None:
    policy = replace(PLAIN, **change)
    assert json.loads(encode(policy))["version"] == 2
    assert decode(encode(policy)) == policy
    assert within_version(policy, 1) == PLAIN


def test_the_second_version_has_the_names_that_readers_know() -> None:
    shed = replace(CHAT, weight=4, when_unmet=WhenUnmet.SHED, max_queued=50)
    document = json.loads(encode(replace(RICH, classes=(shed,), trust_headers=True)))
    assert document["tenants"] == [TENANT]
    assert document["trustHeaders"] is True
    assert document["fairnessWindow"] == 100
    assert document["priority"] == {
        "basePercent": 50,
        "depthPercent": 30,
        "progressPercent": 20,
        "learn": False,
    }
    (written,) = document["classes"]
    assert (written["weight"], written["whenUnmet"], written["maxQueued"]) == (4, "Shed", 50)


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("version", 1, "policy.classes[0]"),
        ("tenants", {}, "policy.tenants"),
        ("tenants", [7], "policy.tenants[0]"),
        ("tenants", [TENANT | {"name": "Team"}], "policy.tenants[0].name"),
        ("tenants", [TENANT | {"weight": 0}], "policy.tenants[0].weight"),
        ("tenants", [TENANT | {"weight": 101}], "policy.tenants[0].weight"),
        ("tenants", [TENANT | {"keySha256": HASH[:-1]}], "policy.tenants[0].keySha256"),
        ("tenants", [TENANT | {"keySha256": HASH.upper()}], "policy.tenants[0].keySha256"),
        ("tenants", [TENANT | {"share": 1}], "policy.tenants[0]"),
        ("tenants", [TENANT, TENANT | {"keySha256": None}], "policy.tenants"),
        ("tenants", [TENANT, TENANT | {"name": "other"}], "policy.tenants"),
        ("tenants", [{**TENANT, "name": f"t{n}", "keySha256": None} for n in range(65)],
         "policy.tenants"),
        ("trustHeaders", 1, "policy.trustHeaders"),
        ("trustHeaders", None, "policy.trustHeaders"),
        ("fairnessWindow", 0, "policy.fairnessWindow"),
        ("fairnessWindow", 10_001, "policy.fairnessWindow"),
        ("priority", [], "policy.priority"),
        ("priority", PRIORITY | {"basePercent": 51}, "policy.priority"),
        ("priority", PRIORITY | {"basePercent": 49}, "policy.priority"),
        ("priority", PRIORITY | {"basePercent": 101, "depthPercent": -21},
         "policy.priority.basePercent"),
        ("priority", PRIORITY | {"depthPercent": True}, "policy.priority.depthPercent"),
        ("priority", PRIORITY | {"learn": "no"}, "policy.priority.learn"),
        ("priority", PRIORITY | {"gamma": 1}, "policy.priority"),
        ("classes", [CLASS | {"weight": 0}], "policy.classes[0].weight"),
        ("classes", [CLASS | {"weight": 1.0}], "policy.classes[0].weight"),
        ("classes", [CLASS | {"whenUnmet": "Drop"}], "policy.classes[0].whenUnmet"),
        ("classes", [CLASS | {"whenUnmet": None}], "policy.classes[0].whenUnmet"),
        ("classes", [CLASS | {"maxQueued": 0}], "policy.classes[0].maxQueued"),
        ("classes", [CLASS | {"maxQueued": 100_001}], "policy.classes[0].maxQueued"),
    ],
)  # fmt: skip
def test_a_bad_field_is_refused_and_named(field: str, value: Any, named: str) -> None:
    document = json.loads(encode(RICH)) | {field: value}
    with pytest.raises(PolicyFormatError) as refusal:
        decode(json.dumps(document).encode())
    assert str(refusal.value).startswith(f"{named}:")


@pytest.mark.parametrize(
    "path",
    [
        *((name,) for name in ("tenants", "trustHeaders", "fairnessWindow", "priority")),
        *(("classes", 0, name) for name in sorted(CLASS)),
        *(("tenants", 0, name) for name in sorted(TENANT)),
        *(("priority", name) for name in sorted(PRIORITY)),
    ],
    ids=str,
)
def test_a_missing_field_is_refused_and_named(path: tuple[str | int, ...]) -> None:
    document = json.loads(encode(RICH))
    within: Any = document
    for step in path[:-1]:
        within = within[step]
    del within[path[-1]]
    with pytest.raises(PolicyFormatError, match=rf"\.{path[-1]}: is missing"):
        decode(json.dumps(document).encode())


def test_a_key_hash_is_neither_in_a_refusal_nor_in_what_is_printed() -> None:
    document = json.loads(encode(RICH)) | {"tenants": [TENANT, TENANT | {"name": "other"}]}
    with pytest.raises(PolicyFormatError) as refusal:
        decode(json.dumps(document).encode())
    assert HASH not in str(refusal.value)
    assert HASH not in repr(RICH)
