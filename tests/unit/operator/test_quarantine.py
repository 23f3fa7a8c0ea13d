"""Events for requests that broke an engine or the plug-in: one for each, and no word of theirs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headway_operator.decide import Notice, decide
from headway_operator.observe.quarantine import BadRequests, Quarantined, bad_requests
from headway_operator.observe.sidecars import SidecarReport, Sidecars
from headway_operator.snapshot import Snapshot
from tests.unit.operator.samples import NOW, carried_out, ready_pod, settled, snapshot

FIRST, SECOND = "aa" * 12, "bb" * 12
STATUS = {
    "quarantined": [{"fingerprint": SECOND, "crashes": 3}, {"fingerprint": FIRST, "crashes": 2}],
    "setAsideRequests": 7,
}


def telling(before: Snapshot, bad: BadRequests, name: str = "demo-1") -> Snapshot:
    uid = ready_pod(name).uid
    report = replace(before.reports.get(uid, SidecarReport(asked=True)), bad=bad)
    return replace(before, reports={**before.reports, uid: report})


def notices(found: Snapshot) -> list[Notice]:
    return [each for each in decide(found, NOW).notices if each.reason.startswith("Request")]


def quarantined(*entries: tuple[str, int]) -> BadRequests:
    return BadRequests(tuple(Quarantined(*each) for each in entries))


@pytest.fixture
def quiet() -> Snapshot:
    return settled(snapshot(None, ready_pod()))


def test_a_request_that_is_refused_is_told_once(quiet: Snapshot) -> None:
    assert notices(quiet) == []
    found = telling(quiet, quarantined((FIRST, 2)))
    (notice,) = notices(found)
    assert (notice.warning, notice.reason) == (True, "RequestQuarantined")
    assert "pod demo-1" in notice.message
    assert FIRST in notice.message
    assert notices(carried_out(found, decide(found, NOW))) == []


def test_another_one_and_another_crash_are_news(quiet: Snapshot) -> None:
    found = telling(quiet, quarantined((FIRST, 2)))
    found = carried_out(found, decide(found, NOW))
    (notice,) = notices(telling(found, quarantined((FIRST, 2), (SECOND, 2))))
    assert SECOND in notice.message
    (notice,) = notices(telling(found, quarantined((FIRST, 3))))
    assert "died 3 times" in notice.message


def test_what_is_cleared_is_no_news_and_told_again_when_it_comes_again(quiet: Snapshot) -> None:
    found = telling(quiet, quarantined((FIRST, 2)))
    found = carried_out(found, decide(found, NOW))
    cleared = telling(found, BadRequests())
    assert notices(cleared) == []
    cleared = carried_out(cleared, decide(cleared, NOW))
    assert len(notices(telling(cleared, quarantined((FIRST, 2))))) == 1


def test_that_requests_are_set_aside_is_told_once_a_pod(quiet: Snapshot) -> None:
    found = telling(quiet, BadRequests(set_aside=True))
    (notice,) = notices(found)
    assert (notice.warning, notice.reason) == (True, "RequestSetAside")
    assert notices(carried_out(found, decide(found, NOW))) == []


def test_what_a_pod_tells_is_news_when_it_changes() -> None:
    sidecars = Sidecars()
    sidecars.polled("p", {})
    assert sidecars.polled("p", STATUS)
    assert sidecars.report("p").bad == BadRequests(
        (Quarantined(FIRST, 2), Quarantined(SECOND, 3)), set_aside=True
    )
    assert not sidecars.polled("p", {**STATUS, "setAsideRequests": 8})
    sidecars.silent("p")
    assert sidecars.report("p").bad.set_aside


@pytest.mark.parametrize(
    "entry",
    [
        None,
        FIRST,
        {},
        {"fingerprint": "what was asked", "crashes": 2},
        {"fingerprint": FIRST + "\n", "crashes": 2},
        {"fingerprint": FIRST.upper(), "crashes": 2},
        {"fingerprint": FIRST, "crashes": "2"},
        {"fingerprint": FIRST, "crashes": True},
        {"fingerprint": FIRST, "crashes": 10**9},
        {"fingerprint": FIRST, "crashes": 0},
    ],
)
def test_what_is_no_fingerprint_is_not_told(entry: Any) -> None:
    assert bad_requests({"quarantined": [entry]}) == BadRequests()
    assert bad_requests({"quarantined": entry, "setAsideRequests": entry}) == BadRequests()


def test_a_pod_cannot_have_more_told_than_a_few() -> None:
    many = [{"fingerprint": f"{at:024x}", "crashes": 2} for at in range(1000)]
    assert len(bad_requests({"quarantined": many}).quarantined) == 16
