"""The section of the report about a fault: nothing in it that was not recorded."""

from __future__ import annotations

import json

from tests.faults.recording import REFUSED, Happening, Recording, Request, Sample
from tests.faults.section import longest_gap_s, restarts, section, summary_row


def recording() -> Recording:
    return Recording(
        key="pod_dies",
        title="A pod that dies",
        cause="It is killed.",
        date="2026-01-01T00:00:00Z",
        samples=[
            Sample(0.0, answered=True, ready=2, pods=2),
            Sample(1.0, answered=True, ready=1, pods=2, restarts=1),
            Sample(2.0, answered=False),
            Sample(3.1, answered=True, ready=2, pods=2, restarts=1),
        ],
        happenings=[Happening(0.6, "done", "killed | at once"), Happening(1.0, "pod", "pod A: x")],
        requests=[
            Request(0.0, 0.5, first_token_s=0.2),
            Request(1.0, 1.1, REFUSED),
            Request(2.0, 2.5, "stream cut", first_token_s=2.2),
            Request(3.0, 3.5, first_token_s=3.1),
        ],
        marks={"caused": 0.6, "shown": 1.6, "recovered": 3.1},
    )


def test_a_recording_survives_its_file() -> None:
    stored = json.loads(json.dumps(recording().to_json()))
    assert Recording.from_json(stored) == recording()


def test_failures_are_counted_by_what_clients_saw() -> None:
    text = section(recording())
    assert "| 4, 2, 2 (1 connection refused, 1 stream cut) |" in text
    assert recording().failed() == [REFUSED, "stream cut"]


def test_those_that_failed_before_their_first_token_are_told_apart() -> None:
    assert recording().failed_before_they_began() == [REFUSED]
    text = section(recording())
    assert "| of those that failed, before their first token | 1 |" in text
    assert "| from the fault until the last was offered that failed | 1.4 s |" in text


def test_where_only_what_ran_already_failed_that_is_said() -> None:
    found = recording()
    found.marks["caused"] = 2.1
    assert "until the last was offered that failed | none was offered after it |" in section(found)


def test_where_first_tokens_were_not_noted_nothing_is_said_of_them() -> None:
    found = recording()
    found.requests = [Request(each.offered_s, each.ended_s, each.error) for each in found.requests]
    assert "first token" not in section(found)


def test_how_long_a_router_knew_a_dead_pod_is_told_in_tenths() -> None:
    found = recording()
    assert "router" not in section(found)
    found.marks["unlisted"] = 0.9
    assert "| from the fault until the pod is off the router's list | 0.3 s |" in section(found)


def test_a_moment_of_refusals_is_no_loss_but_many_are() -> None:
    found = recording()
    assert found.lost() == ["stream cut"]
    found.requests += [Request(4.0 + at, 4.1 + at, REFUSED) for at in range(3)]
    assert found.lost() == found.failed()


def test_each_second_shows_ready_pods_and_the_client() -> None:
    lines = section(recording()).splitlines()
    assert "ready pods  21?2" in lines
    assert "client      .xx." in lines


def test_what_was_not_reached_is_no_time() -> None:
    found = recording()
    text = section(found)
    assert "| from the fault until the service said so | 1 s |" in text
    assert "| from the fault, unrepaired, until all was as before | 2 s |" in text
    del found.marks["recovered"]
    found.marks["mended"] = 2.0
    assert "| from the repair until all was as before | - |" in section(found)


def test_a_longest_gap_spans_failures() -> None:
    assert longest_gap_s(recording().requests) == 3.0


def test_restarts_of_pods_that_came_later_count_and_going_pods_take_none_back() -> None:
    found = recording()
    found.samples += [
        Sample(4.0, answered=True, restarts=0),
        Sample(5.0, answered=True, restarts=2),
    ]
    assert restarts(found) == 3


def test_text_cannot_break_the_table() -> None:
    assert r"killed \| at once" in section(recording())


def test_what_did_not_hold_is_said_first() -> None:
    found = recording()
    found.failure = "AssertionError: three were lost"
    assert "**Did not hold:** AssertionError: three were lost" in section(found)
    assert summary_row(found).endswith("| no |")
    assert summary_row(recording()).endswith("| yes |")
