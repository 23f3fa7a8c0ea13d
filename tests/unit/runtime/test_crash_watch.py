"""What an engine keeps of who is under way, and what the next one makes of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headway_runtime.exchange.fingerprint import Fingerprints
from headway_runtime.exchange.suspects_file import Told, file_name, read_told
from headway_runtime.exchange.under_way_file import SLOTS, UnderWayWriter, read_under_way
from headway_runtime.exchange.under_way_file import file_name as under_way_name
from headway_runtime.executors.vllm.crash_watch import CrashWatch
from headway_runtime.scheduling.quarantine.suspects import UnderWay
from tests.unit.runtime.engines import core_output, request

NOW_S = 1_700_000_000.0


class Engine:
    """One engine's life, as the plug-in sees it."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.prints = Fingerprints.of_run(run_dir)
        self.watch = CrashWatch.of_run(
            run_dir, 0, tenant_of=lambda each: f"of-{each.request_id}", clock=lambda: NOW_S
        )

    def print_of(self, name: str) -> bytes:
        return self.prints.of(b"", {"prompt": name})

    def arrives(self, name: str, body: str | None = None, **other: Any) -> Any:
        stamp = self.prints.stamped(self.print_of(body or name))
        made: Any = request(name, extra_args={"headway_fingerprint": stamp})
        for field, value in other.items():
            setattr(made, field, value)
        self.watch.arriving(made)
        return made

    def waits(self, name: str, body: str | None = None) -> Any:
        made = self.arrives(name, body)
        self.watch.added(made)
        return made

    def runs(self, name: str, body: str | None = None) -> Any:
        made = self.waits(name, body)
        new = [SimpleNamespace(req_id=name)]
        self.watch.scheduled(SimpleNamespace(scheduled_new_reqs=new))
        return made

    def token(self, name: str, end: str | None = None) -> None:
        self.watch.tokens_came({0: SimpleNamespace(outputs=[core_output(name, 1, end)])})
        if end is not None:
            self.watch.ended([name])

    @property
    def under_way(self) -> dict[str, bool]:
        """Tenants of those who are, and whether they have a token."""
        found = read_under_way(self.run_dir / under_way_name(0))
        return {each.tenant.removeprefix("of-"): each.has_token for each in found}

    @property
    def told(self) -> Told:
        return read_told(self.run_dir / file_name(0))


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


def test_only_those_that_run_are_under_way(engine: Engine) -> None:
    engine.waits("waits")
    engine.runs("runs")
    engine.runs("has-a-token")
    engine.token("has-a-token")
    engine.runs("ended")
    engine.token("ended", "STOP")
    engine.runs("aborted")
    engine.watch.ended(["aborted"])
    assert engine.under_way == {"runs": False, "has-a-token": True}


def test_while_vllm_takes_a_request_in_it_may_break_it(engine: Engine) -> None:
    engine.arrives("breaks")
    assert engine.under_way == {"": False}


def test_an_engine_that_ended_in_peace_leaves_no_suspects(engine: Engine, tmp_path: Path) -> None:
    engine.runs("r")
    engine.watch.ended(["r"])
    assert Engine(tmp_path).told == Told()


def test_who_was_under_way_is_suspected_in_the_next_engine(engine: Engine, tmp_path: Path) -> None:
    engine.runs("new")
    engine.runs("old")
    engine.token("old")
    told = Engine(tmp_path).told
    assert told.crashes == 1
    suspects = told.suspects
    assert suspects[engine.print_of("new")] == ("of-new", 1, 1, NOW_S)
    assert suspects[engine.print_of("old")] == ("of-old", 0, 1, NOW_S)
    # Taken note of once.
    assert Engine(tmp_path).told == told


def test_the_fingerprint_counts_whatever_the_requests_id(engine: Engine, tmp_path: Path) -> None:
    engine.runs("first", "poison")
    after = Engine(tmp_path)
    after.runs("again", "poison")
    found = Engine(tmp_path).told
    assert found.crashes == 2
    assert found.suspects[engine.print_of("poison")].before_token == 2


@pytest.mark.parametrize("end", ["STOP", "LENGTH"])
def test_a_suspect_that_ends_well_is_cleared(engine: Engine, tmp_path: Path, end: str) -> None:
    for name in ("one", "two"):
        engine.runs(name)
    after = Engine(tmp_path)
    after.runs("one")
    after.token("one", end)
    assert set(after.told.suspects) == {engine.print_of("two")}
    assert Engine(tmp_path).told.crashes == 1


@pytest.mark.parametrize("end", ["ABORT", "ERROR"])
def test_a_suspect_that_ends_otherwise_is_not(engine: Engine, tmp_path: Path, end: str) -> None:
    engine.runs("one")
    after = Engine(tmp_path)
    after.runs("one")
    after.token("one", end)
    assert set(after.told.suspects) == {engine.print_of("one")}


@pytest.mark.parametrize(("stop", "has_token"), [([], True), (["x"], False), (["x"], True)])
def test_an_abort_may_be_a_stop_string_that_was_met(
    engine: Engine, tmp_path: Path, stop: list[str], has_token: bool
) -> None:
    engine.runs("one")
    after = Engine(tmp_path)
    made = after.runs("one")
    made.sampling_params.stop = stop
    if has_token:
        after.token("one")
    after.watch.given_up([made])
    assert (not after.told.suspects) is (bool(stop) and has_token)


def scheduler_fails(request: Any) -> None:
    """As vLLM's loops name what they are at."""
    raise ZeroDivisionError(request.request_id)


def test_what_the_scheduler_was_at_is_suspected_although_it_waits(
    engine: Engine, tmp_path: Path
) -> None:
    engine.runs("runs")
    engine.token("runs")
    waits = engine.waits("waits")
    with pytest.raises(ZeroDivisionError) as raised:
        scheduler_fails(waits)
    engine.watch.failed(raised.value)
    told = Engine(tmp_path).told.suspects
    assert told[engine.print_of("waits")].before_token == 1
    assert told[engine.print_of("runs")].before_token == 0


def test_a_failure_at_nobody_changes_nothing(engine: Engine) -> None:
    engine.runs("runs")
    engine.watch.failed(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError) as raised:
        scheduler_fails(SimpleNamespace(request_id="unknown"))
    engine.watch.failed(raised.value)
    assert engine.under_way == {"runs": False}


def test_the_next_part_of_a_session_leaves_it_under_way(engine: Engine) -> None:
    made = engine.runs("session")
    engine.token("session")
    engine.watch.arriving(made)
    engine.watch.added(made)
    assert engine.under_way == {"session": True}


@pytest.mark.parametrize("extra", [None, {}, {"headway_fingerprint": "ab" * 24}, [1]])
def test_what_was_not_marked_at_the_door_is_not_kept(engine: Engine, extra: Any) -> None:
    made = request("r", extra_args=extra)
    engine.watch.arriving(made)
    engine.watch.added(made)
    engine.watch.scheduled(SimpleNamespace(scheduled_new_reqs=[SimpleNamespace(req_id="r")]))
    engine.token("r", "STOP")
    assert engine.under_way == {}


def test_more_than_there_is_room_for_are_not_kept(engine: Engine) -> None:
    for number in range(SLOTS + 5):
        engine.runs(f"r{number}")
    assert len(engine.under_way) == SLOTS
    engine.watch.ended([f"r{number}" for number in range(SLOTS + 5)])
    assert engine.under_way == {}
    engine.runs("one-more")
    assert engine.under_way == {"one-more": False}


@pytest.mark.parametrize("content", [b"", b"foreign", b"HEADWAYU" + b"\1" * 300])
def test_a_file_that_makes_no_sense_says_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / under_way_name(0)).write_bytes(content)
    (tmp_path / file_name(0)).write_bytes(content)
    assert Engine(tmp_path).told == Told()


def test_a_torn_record_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / under_way_name(0)
    writer = UnderWayWriter(path)
    for number in range(2):
        writer.begin(UnderWay(bytes([number]) * 12))
    writer.close()
    content = bytearray(path.read_bytes())
    content[10] ^= 1
    path.write_bytes(content)
    assert [each.fingerprint for each in read_under_way(path)] == [b"\1" * 12]
