"""What the planner is told of waiting requests."""

from __future__ import annotations

from typing import Any

import pytest

from headway_runtime.executors.vllm import request_class
from headway_runtime.executors.vllm.request_class import CLASS_KEY, Classifier
from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.view import Readiness
from tests.unit.runtime.engines import Status, request
from tests.unit.runtime.policies import policy

CHAT, BATCH = TrafficClass("chat", ttft_ms=1000), TrafficClass("batch", deadline_s=60)


@pytest.fixture
def late() -> set[str]:
    return set()


@pytest.fixture
def classifier(late: set[str]) -> Classifier:
    return Classifier(policy(1, 1, 1, classes=(CHAT, BATCH)), late)


def chat(tokens: int = 100, arrival_s: float = 1.0) -> Any:
    made = request("r", arrival_s, {CLASS_KEY: "chat"})
    made.num_tokens = tokens
    return made


def test_it_is_known_by_class_tokens_and_readiness(classifier: Classifier) -> None:
    found = classifier.waiting(chat())
    assert (found.request_id, found.arrival_s, found.traffic_class) == ("r", 1.0, CHAT)
    assert (found.readiness, found.prefill_tokens, found.is_late) == (Readiness.READY, 100, False)


def test_one_that_waits_on_is_looked_at_once(
    classifier: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = chat()
    found = classifier.waiting(waiting)
    monkeypatch.setattr(request_class, "readiness", lambda _: pytest.fail("looked again"))
    assert classifier.waiting(waiting) is found


def test_one_that_waits_again_after_it_ran_has_more_tokens_to_compute(
    classifier: Classifier,
) -> None:
    waiting = chat()
    waiting.status = Status.PREEMPTED
    classifier.waiting(waiting)
    classifier.left(["r"])
    waiting.num_tokens = 130
    assert classifier.waiting(waiting).prefill_tokens == 130


def test_one_that_was_given_up_is_late(classifier: Classifier, late: set[str]) -> None:
    waiting = chat()
    classifier.waiting(waiting)
    late.add("r")
    classifier.forget(["r"])
    assert classifier.waiting(waiting).is_late


def test_one_that_is_not_ready_is_looked_at_again(classifier: Classifier) -> None:
    waiting = chat()
    waiting.status = Status.WAITING_FOR_STREAMING_REQ
    assert classifier.waiting(waiting).readiness is Readiness.BLOCKED
    waiting.status = Status.WAITING
    assert classifier.waiting(waiting).readiness is Readiness.READY
    waiting.status = Status.WAITING_FOR_STREAMING_REQ
    assert classifier.waiting(waiting).readiness is Readiness.BLOCKED


def test_the_next_part_of_a_session_is_another_request(classifier: Classifier) -> None:
    waiting = chat()
    classifier.waiting(waiting)
    waiting.arrival_time, waiting.num_tokens = 7.0, 150
    waiting.sampling_params.extra_args = {CLASS_KEY: "batch"}
    found = classifier.waiting(waiting)
    assert (found.arrival_s, found.prefill_tokens, found.traffic_class) == (7.0, 150, BATCH)
