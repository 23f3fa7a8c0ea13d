import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.policy import (
    FORMAT_VERSION,
    MAX_CLASSES,
    MAX_PAYLOAD_BYTES,
    MAX_TENANTS,
    MAX_THETA_PPM,
    Policy,
    PolicyFormatError,
    PriorityCoefficients,
    Scope,
    SignedPolicy,
    Stamp,
    Tenant,
    TrafficClass,
    WhenUnmet,
    decode,
    encode,
)
from tests.unit.policy_documents import counts, policies


@given(policies())
def test_what_is_encoded_is_decoded(policy: Policy) -> None:
    assert decode(encode(policy)) == policy


@given(policies(), policies())
def test_equal_policies_and_only_those_have_equal_bytes(one: Policy, other: Policy) -> None:
    assert (encode(one) == encode(other)) == (one == other)


@given(policies(), st.binary(max_size=64), st.binary(max_size=64))
def test_an_envelope_survives_the_journey(policy: Policy, signature: bytes, key: bytes) -> None:
    signed = SignedPolicy(encode(policy), signature, key.hex()[:32] or "k")
    assert SignedPolicy.from_json(signed.to_json()) == signed


@given(st.binary(max_size=200))
def test_arbitrary_bytes_raise_only_the_format_error(text: bytes) -> None:
    with pytest.raises(PolicyFormatError):
        decode(text)
    with pytest.raises(PolicyFormatError):
        SignedPolicy.from_json(text)


@given(st.tuples(counts, counts, counts), st.tuples(counts, counts, counts))
def test_stamps_order_by_generation_then_epoch_then_counter(
    one: tuple[int, int, int], other: tuple[int, int, int]
) -> None:
    assert (Stamp(*one) < Stamp(*other)) == (one < other)


POLICY = Policy(Scope("service"), Stamp(3, 2, 1), classes=(TrafficClass("chat", ttft_ms=500),))
[CLASS] = json.loads(encode(POLICY))["classes"]


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("version", FORMAT_VERSION + 1, "policy.version"),
        ("version", 0, "policy.version"),
        ("serviceUid", "", "policy.serviceUid"),
        ("serviceUid", "a/b", "policy.serviceUid"),
        ("podUid", 7, "policy.podUid"),
        ("generation", -1, "policy.generation"),
        ("epoch", True, "policy.epoch"),
        ("counter", 1.5, "policy.counter"),
        ("counter", 2**53, "policy.counter"),
        ("mode", "Faster", "policy.mode"),
        ("mode", ["Act"], "policy.mode"),
        ("maxBatchSize", 0, "policy.maxBatchSize"),
        ("tokenBudget", "512", "policy.tokenBudget"),
        ("classes", {}, "policy.classes"),
        ("classes", ["chat"], "policy.classes[0]"),
        ("classes", [CLASS | {"ttftMs": 0}], "policy.classes[0].ttftMs"),
        ("classes", [CLASS | {"tpotMs": 0}], "policy.classes[0].tpotMs"),
        ("classes", [CLASS | {"tpotMs": 2.5}], "policy.classes[0].tpotMs"),
        ("classes", [CLASS | {"deadlineS": 0}], "policy.classes[0].deadlineS"),
        ("classes", [CLASS | {"maxRunning": 0}], "policy.classes[0].maxRunning"),
        ("classes", [CLASS | {"maxRunning": True}], "policy.classes[0].maxRunning"),
        ("classes", [CLASS | {"weight": 1}], "policy.classes[0]"),
        ("classes", [{"name": "chat"}], "policy.classes[0].ttftMs"),
        ("classes", [CLASS] * 2, "policy.classes"),
        ("thetaPpm", -1, "policy.thetaPpm"),
        ("thetaPpm", MAX_THETA_PPM + 1, "policy.thetaPpm"),
        ("thetaPpm", 0.5, "policy.thetaPpm"),
        ("defaultClass", "other", "policy.defaultClass"),
    ],
)
def test_a_bad_field_is_refused_and_named(field: str, value: Any, named: str) -> None:
    document = json.loads(encode(POLICY)) | {field: value}
    with pytest.raises(PolicyFormatError) as refusal:
        decode(json.dumps(document).encode())
    assert str(refusal.value).startswith(f"{named}:")


@pytest.mark.parametrize("field", sorted(json.loads(encode(POLICY))))
def test_a_missing_field_is_refused_and_named(field: str) -> None:
    document = json.loads(encode(POLICY))
    del document[field]
    with pytest.raises(PolicyFormatError, match=rf"policy\.{field}: is missing"):
        decode(json.dumps(document).encode())


@pytest.mark.parametrize("field", sorted(CLASS))
def test_a_missing_field_of_a_class_is_refused_and_named(field: str) -> None:
    document = json.loads(encode(POLICY))
    del document["classes"][0][field]
    with pytest.raises(PolicyFormatError, match=rf"policy\.classes\[0\]\.{field}: is missing"):
        decode(json.dumps(document).encode())


def test_the_fields_of_a_policy_have_the_names_that_readers_know() -> None:
    batch = TrafficClass("batch", ttft_ms=1, tpot_ms=2, deadline_s=3, max_running=4)
    policy = Policy(Scope("service"), Stamp(3, 2, 1), classes=(batch,), theta_ppm=5)
    document = json.loads(encode(policy))
    assert document["thetaPpm"] == 5
    assert document["classes"] == [
        {"name": "batch", "ttftMs": 1, "tpotMs": 2, "deadlineS": 3, "maxRunning": 4}
    ]


def test_the_largest_policy_fits_the_bound() -> None:
    largest = 2**53 - 1
    classes = tuple(
        TrafficClass(
            *(f"{number:063}", largest, largest, largest, largest),
            *(100, WhenUnmet.QUEUE, 100_000),
        )
        for number in range(MAX_CLASSES)
    )
    policy = Policy(
        Scope("s" * 64, "p" * 64),
        Stamp(largest, largest, largest),
        max_batch_size=largest,
        token_budget=largest,
        classes=classes,
        default_class="0" * 63,
        theta_ppm=MAX_THETA_PPM,
        tenants=tuple(
            Tenant(f"{number:063}", 100, f"{number:064x}") for number in range(MAX_TENANTS)
        ),
        trust_headers=False,
        fairness_window=10_000,
        priority=PriorityCoefficients(34, 33, 33),
    )
    assert decode(encode(policy)) == policy


def test_an_unknown_field_is_refused_without_repeating_its_name() -> None:
    document = json.loads(encode(POLICY)) | {"secret-looking-name": 1}
    with pytest.raises(PolicyFormatError) as refusal:
        decode(json.dumps(document).encode())
    assert "unknown" in str(refusal.value)
    assert "secret" not in str(refusal.value)


def test_an_oversized_document_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(PolicyFormatError, match="bytes"):
        decode(b" " * (MAX_PAYLOAD_BYTES + 1))


@pytest.mark.parametrize(
    ("scope", "covered"),
    [
        (Scope("service"), True),
        (Scope("service", "pod"), True),
        (Scope("service", "another pod"), False),
        (Scope("another service"), False),
        (Scope("another service", "pod"), False),
    ],
)
def test_a_scope_covers_its_service_and_its_pod_only(scope: Scope, covered: bool) -> None:
    assert scope.covers("service", "pod") is covered
