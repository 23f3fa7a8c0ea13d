"""What the sidecar tells of engines that died, and of requests that are tried or refused."""

from __future__ import annotations

from headway_runtime.exchange.refusal_counts import QUARANTINED
from headway_runtime.exchange.suspects_file import Told
from headway_runtime.scheduling.quarantine.suspects import QUARANTINE_S, REMEMBERED_S, Suspect
from headway_runtime.sidecar.quarantine import (
    quarantine_document,
    quarantine_metrics,
    quarantined_document,
)

NOW_S = 1_700_000_000.0
TOLD = Told(
    5,
    {
        b"guilty______": Suspect("acme", 2, 3, NOW_S - 60),
        b"tried_______": Suspect("", 1, 1, NOW_S - 90),
        b"had_a_token_": Suspect("acme", 0, 1, NOW_S),
        b"long_ago____": Suspect("acme", 5, 5, NOW_S - REMEMBERED_S),
    },
)


def test_metrics_count_different_requests() -> None:
    samples = {
        sample.name: sample.value
        for metric in quarantine_metrics(TOLD, {QUARANTINED: 9, ("chat", "QueueFull"): 4}, NOW_S)
        for sample in metric.samples
    }
    assert samples == {
        "headway_engine_crashes_total": 5,
        "headway_suspected_requests": 1,
        "headway_quarantined_requests": 1,
        "headway_quarantine_refusals_total": 9,
    }


def test_before_an_engine_has_died_there_is_one_series() -> None:
    samples = [each for metric in quarantine_metrics(Told(), {}, NOW_S) for each in metric.samples]
    assert [(each.name, each.value) for each in samples] == [("headway_engine_crashes_total", 0)]


def test_the_document_tells_of_those_that_something_is_held_against() -> None:
    assert quarantine_document(TOLD, NOW_S) == {
        "engineCrashes": 5,
        "requests": [
            {
                "fingerprint": b"tried_______".hex(),
                "standing": "Tried",
                "tenant": None,
                "crashes": 1,
                "crashesBeforeFirstToken": 1,
                "lastCrashSecondsAgo": 90,
                "refusedForSeconds": None,
            },
            {
                "fingerprint": b"guilty______".hex(),
                "standing": "Quarantined",
                "tenant": "acme",
                "crashes": 3,
                "crashesBeforeFirstToken": 2,
                "lastCrashSecondsAgo": 60,
                "refusedForSeconds": 4 * QUARANTINE_S - 60,
            },
        ],
    }


def test_the_operator_is_told_of_those_that_are_refused_and_not_whose_they_are() -> None:
    told = [{"fingerprint": b"guilty______".hex(), "crashes": 3}]
    assert quarantined_document(TOLD, NOW_S) == told


def test_of_many_the_operator_is_told_of_the_newest() -> None:
    many = {b"%012d" % at: Suspect("", 2, 2, NOW_S - at) for at in range(40)}
    found = quarantined_document(Told(2, many), NOW_S)
    assert [each["fingerprint"] for each in found] == [(b"%012d" % at).hex() for at in range(16)]
