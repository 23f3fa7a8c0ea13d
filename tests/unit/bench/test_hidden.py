"""What is not told to an engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway_runtime.bench.arms import parse
from headway_runtime.bench.catalogue import named
from headway_runtime.bench.hidden import HIDING, restored, shown
from headway_runtime.bench.outcome import Ending
from headway_runtime.bench.rivals.ablations import ABLATIONS
from headway_runtime.bench.scenarios import Offer
from headway_runtime.bench.simulated import SimulatedGpu, simulate
from headway_runtime.bench.workload import Request, Workload
from headway_runtime.policy import WhenUnmet


def workload(name: str) -> Workload:
    return named([name])[0].workload(Offer(1, 29_000.0, 5.0))


def sent(requests: tuple[Request, ...]) -> list[Request]:
    """What is sent, whatever is said of it."""
    return [replace(each, tenant="", call=None) for each in requests]


@pytest.mark.parametrize("part", HIDING)
@pytest.mark.parametrize("name", ["programs-mixed", "overload-200"])
def test_what_is_hidden_changes_nothing_that_is_sent(part: str, name: str) -> None:
    whole = workload(name)
    seen = shown(parse(f"headway-no-{part}"), whole)
    assert sent(seen.requests) == sent(whole.requests)
    assert part in ABLATIONS


def test_each_part_hides_its_own() -> None:
    whole = workload("programs-mixed")
    nobody = shown(parse("headway-no-tenants"), whole)
    assert {each.tenant for each in nobody.requests} == {""}
    assert not nobody.tenants
    assert any(each.call for each in nobody.requests)
    nothing = shown(parse("headway-no-programs"), whole)
    assert not any(each.call for each in nothing.requests)
    assert nothing.tenants == whole.tenants
    everybody = shown(parse("headway-no-door"), workload("overload-200"))
    assert {each.when_unmet for each in everybody.classes} == {WhenUnmet.QUEUE}


def test_other_arms_are_told_everything() -> None:
    whole = workload("programs-mixed")
    assert all(shown(parse(arm), whole) is whole for arm in ("headway", "headway-no-order", "vtc"))


def test_outcomes_know_whose_they_are_whatever_was_hidden() -> None:
    whole = workload("programs-mixed")
    loaded = simulate(SimulatedGpu(), parse("headway-no-tenants"), whole, 1, 60.0)
    assert [(each.tenant, each.program) for each in loaded.outcomes] == [
        (each.tenant, each.program) for each in whole.requests
    ]
    assert restored(whole, loaded.outcomes) == loaded.outcomes


def test_without_a_door_nobody_is_refused() -> None:
    whole = named(["overload-200"])[0].workload(Offer(1, 29_000.0, 15.0))
    refused = {
        arm: sum(
            each.ending is Ending.REFUSED
            for each in simulate(SimulatedGpu(), parse(arm), whole, 1, 20.0).outcomes
        )
        for arm in ("headway", "headway-no-door")
    }
    assert refused["headway"] > 0
    assert refused["headway-no-door"] == 0
