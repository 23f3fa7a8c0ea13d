"""Requests as they are followed through an engine, and what is written of them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headway_runtime.exchange.history_file import Header, Histories, HistoryWriter
from headway_runtime.executors.vllm.class_accounts import ClassAccounts
from headway_runtime.executors.vllm.history_log import (
    MOST_AT_ONCE,
    MOST_UNWRITTEN,
    ONE_IN_NS,
    TOLD_AFTER_NS,
    HistoryLog,
)
from headway_runtime.executors.vllm.request_histories import RequestHistories
from headway_runtime.executors.vllm.request_spans import RequestSpans
from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.history.lifecycle import State
from headway_runtime.scheduling.history.summary import RequestSummary, Yielded
from headway_runtime.scheduling.history.work_done import REASONS
from headway_runtime.scheduling.reason import Reason
from tests.unit.runtime.engines import Status, core_output, request
from tests.unit.runtime.policies import policy

CHAT = TrafficClass("chat", ttft_ms=500, tpot_ms=30)
POLICY = policy(1, 1, 1, classes=(CHAT, TrafficClass("batch")))
SECOND = 10**9
TRACE = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}


class Bench:
    """Followed requests, their file, and a clock in nanoseconds."""

    def __init__(self, path: Path, **slots: int) -> None:
        self.path = path / "requests-0.bin"
        self.now_ns = SECOND
        self.accounts = ClassAccounts()
        self.accounts.adopt(POLICY)
        self.spans: list[Any] = []
        log = HistoryLog(
            HistoryWriter(self.path, Header(**{"under_way": 4, "ended": 64, **slots})),
            RequestSpans(lambda *told: self.spans.append(told), lambda headers: headers),
        )
        self.engine: dict[str, Any] = {}
        self.histories = RequestHistories(
            self.accounts,
            log,
            lambda made: getattr(made, "tenant", ""),
            lambda made: self.engine.get(made.request_id) is made,
        )

    def arrive(self, name: str = "r", kind: str = "chat", tokens: int = 100, **other: Any) -> Any:
        made = request(name, self.now_ns / 1e9, {"headway_class": kind})
        made.num_tokens = tokens
        for field, value in other.items():
            setattr(made, field, value)
        self.engine.setdefault(name, made)
        self.histories.arrived(made, self.now_ns)
        return made

    def step(
        self,
        new: Any = (),
        resumed: Any = (),
        preempted: Any = None,
        reasons: Any = (),
        ns: int = 10_000_000,
        **tokens: int,
    ) -> None:
        """A step is scheduled; time passes before its output comes."""
        for name in preempted or ():
            self.engine[name].num_computed_tokens = 0
        for name, count in tokens.items():
            self.engine[name].num_computed_tokens += count
        output = SimpleNamespace(
            preempted_req_ids=preempted,
            scheduled_new_reqs=[SimpleNamespace(req_id=name) for name in new],
            scheduled_cached_reqs=SimpleNamespace(resumed_req_ids=set(resumed)),
            total_num_scheduled_tokens=sum(tokens.values()),
            num_scheduled_tokens=tokens,
        )
        self.histories.scheduled(output, reasons, self.now_ns)
        self.now_ns += ns

    def tokens(self, *names: str, end: str | None = None) -> None:
        for name in names:
            self.engine[name].num_output_tokens += 1
            self.engine[name].num_tokens += 1
            if not self.engine[name].resumable:
                self.engine[name].reason = end
        outputs = [core_output(name, 1, end) for name in names]
        self.histories.tokens_came({0: SimpleNamespace(outputs=outputs)}, self.now_ns)
        self.histories.write(self.now_ns)

    def abort(self, name: str, *, by_client: bool = True) -> None:
        self.engine[name].reason = "ABORT"
        self.histories.ended([self.engine.pop(name)], self.now_ns, by_client=by_client)
        self.histories.write(self.now_ns)

    @property
    def told(self) -> dict[str, RequestSummary]:
        """What the file tells, by id."""
        histories = Histories(self.path)
        found = [histories.summary(offset) for offset, _ in histories.keys()]  # noqa: SIM118
        return {each.request_id: each for each in found if each is not None}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_request_is_told_from_its_arrival_to_its_end(bench: Bench) -> None:
    bench.arrive("other", "batch", tokens=60)
    bench.arrive("r", tenant="somebody")
    bench.step(new=["other"], reasons=[Reason.RESERVED], other=60)
    bench.tokens("other")
    bench.step(new=["r"], other=1, r=80)
    bench.tokens("other")
    bench.step(other=1)
    bench.tokens("other")
    bench.step(other=1, r=20)
    bench.tokens("other", "r")
    bench.step(other=1, r=1)
    bench.tokens("r", end="LENGTH")
    told = bench.told["r"]
    assert (told.class_name, told.tenant, told.state) == ("chat", "somebody", State.FINISHED)
    assert (told.ttft_ms, told.tpot_ms) == (500, 30)
    assert [each // 10_000_000 for each in told.ns_in] == [1, 3, 1, 0, 0]
    assert (told.prompt_tokens, told.output_tokens) == (100, 2)
    assert (told.chunks, told.chunk_tokens, told.largest_chunk_tokens) == (2, 100, 80)
    assert (told.held_back_steps, told.waited_steps) == (1, 1)
    assert told.yielded == (Yielded("batch", "", 60),)
    assert told.reasons == ((REASONS.index(Reason.RESERVED), 1),)


def test_tokens_in_the_cache_are_told_apart(bench: Bench) -> None:
    bench.arrive()
    bench.engine["r"].num_computed_tokens = 64
    bench.step(new=["r"], r=36)
    bench.tokens("r", end="STOP")
    assert (bench.told["r"].cached_tokens, bench.told["r"].chunk_tokens) == (64, 36)


def test_a_preempted_request_computes_its_tokens_again(bench: Bench) -> None:
    bench.arrive()
    bench.step(new=["r"], r=100)
    bench.tokens("r")
    bench.step(preempted={"r"})
    bench.step(resumed=["r"], r=60)
    bench.step(r=41)
    bench.tokens("r")
    bench.tokens("r", end="STOP")
    told = bench.told["r"]
    assert (told.preemptions, told.recomputed_tokens, told.preempted_ns) == (1, 100, 10_000_000)
    assert told.first_token_ns - told.arrived_ns == 10_000_000


def test_a_request_that_was_sent_back_without_a_word_was_preempted(bench: Bench) -> None:
    bench.arrive()
    bench.step(new=["r"], r=100)
    bench.tokens("r")
    bench.engine["r"].num_computed_tokens = 0
    bench.step(resumed=["r"], r=101)
    bench.tokens("r", end="STOP")
    assert (bench.told["r"].preemptions, bench.told["r"].recomputed_tokens) == (1, 100)


@pytest.mark.parametrize(("by_client", "state"), [(True, State.ABORTED), (False, State.FAILED)])
def test_a_request_that_is_ended_from_outside_is_told(
    bench: Bench, by_client: bool, state: State
) -> None:
    bench.arrive()
    bench.now_ns += 5
    bench.abort("r", by_client=by_client)
    assert (bench.told["r"].state, bench.told["r"].waiting_ns) == (state, 5)


def test_requests_without_a_class_have_a_history_as_well(bench: Bench) -> None:
    bench.accounts.adopt(None)
    bench.arrive("r", "none")
    bench.step(new=["r"], r=100)
    bench.tokens("r", end="STOP")
    assert bench.told["r"].class_name == ""


def test_a_ttft_that_was_given_up_is_told(bench: Bench) -> None:
    bench.arrive()
    bench.now_ns += SECOND
    bench.histories.given_up(["r", "unknown"], bench.now_ns)
    bench.abort("r")
    assert bench.told["r"].given_up_ns == 2 * SECOND


def test_a_session_pauses_and_goes_on_and_ends(bench: Bench) -> None:
    session = bench.arrive(resumable=True)
    bench.step(new=["r"], r=100)
    session.status = Status.WAITING_FOR_STREAMING_REQ
    bench.tokens("r", end="STOP")
    bench.now_ns += SECOND
    session.status = Status.WAITING
    bench.arrive(resumable=True)
    bench.step(new=["r"], r=1)
    # The next part had come before this one was over.
    bench.tokens("r", end="STOP")
    bench.step(new=["r"], r=1)
    bench.abort("r")
    # What ends a session comes as a request, too.
    bench.engine["r"] = None
    bench.arrive()
    assert len(bench.histories) == 0
    told = bench.told["r"]
    assert (told.state, told.turns, told.paused_ns) == (State.ABORTED, 2, SECOND)


def test_what_makes_no_sense_costs_the_history_and_not_the_accounts(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("r", "s"):
        bench.arrive(name)
        bench.tokens(name)
        bench.tokens(name, end="STOP")
    bench.tokens()
    entry = bench.accounts.table.entry("chat")
    assert entry is not None
    assert (entry.requests, entry.attained, bench.told) == (2, 2, {})
    assert caplog.text.count("lost the history") == 1
    assert Histories(bench.path).header.lost == 2


def test_requests_that_last_are_told_meanwhile(bench: Bench) -> None:
    bench.arrive()
    bench.tokens()
    assert bench.told == {}
    bench.now_ns += TOLD_AFTER_NS
    bench.tokens()
    assert bench.told["r"].state == State.WAITING
    bench.step(new=["r"], ns=TOLD_AFTER_NS, r=100)
    bench.tokens()
    assert bench.told["r"].state == State.PREFILLING
    bench.tokens("r", end="STOP")
    [(_, key)] = Histories(bench.path).keys()
    assert key.ended_ns == bench.now_ns


def test_a_request_that_decodes_is_told_once_until_something_happens(bench: Bench) -> None:
    bench.arrive()
    bench.step(new=["r"], ns=TOLD_AFTER_NS, r=100)
    bench.tokens("r")
    for _ in range(5):
        bench.now_ns += TOLD_AFTER_NS
        bench.tokens()
    [(_, key)] = Histories(bench.path).keys()
    assert key.serial == 1
    bench.step(preempted={"r"})
    bench.tokens()
    assert bench.told["r"].state == State.PREEMPTED


def test_so_many_are_told_in_a_time_and_not_in_a_step(bench: Bench) -> None:
    for number in range(4):
        bench.arrive(f"r{number}")
    bench.now_ns += TOLD_AFTER_NS
    bench.histories._log._told_ns = bench.now_ns
    seen = []
    for _ in range(8):
        bench.now_ns += ONE_IN_NS // 2
        bench.tokens()
        seen.append(len(bench.told))
    assert seen == [0, 1, 1, 2, 2, 3, 3, 4]


def test_after_a_pause_of_the_engine_only_so_many_are_told_at_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, under_way=100)
    for number in range(50):
        bench.arrive(f"r{number}")
    bench.now_ns += 100 * TOLD_AFTER_NS
    bench.tokens()
    assert len(bench.told) == MOST_AT_ONCE


def test_those_there_is_no_room_for_are_told_when_others_have_ended(bench: Bench) -> None:
    for number in range(6):
        bench.arrive(f"r{number}")
    for _ in range(3):
        bench.now_ns += TOLD_AFTER_NS
        bench.tokens()
    assert len(bench.told) == 4
    ended = sorted(bench.told)
    for name in ended:
        bench.abort(name)
    bench.now_ns += TOLD_AFTER_NS
    bench.tokens()
    living = [name for name, told in bench.told.items() if told.state == State.WAITING]
    assert sorted([*living, *ended]) == [f"r{number}" for number in range(6)]


def test_a_request_is_told_until_its_end_is_written(bench: Bench) -> None:
    bench.arrive()
    bench.now_ns += TOLD_AFTER_NS
    bench.tokens()
    bench.engine["r"].reason = "ABORT"
    bench.histories.ended([bench.engine["r"]], bench.now_ns, by_client=True)
    assert bench.told["r"].state == State.WAITING
    bench.histories.write(bench.now_ns)
    assert bench.told["r"].state == State.ABORTED
    assert len(list(Histories(bench.path).keys())) == 1


def test_requests_that_end_do_not_pile_up_unwritten(bench: Bench) -> None:
    for number in range(MOST_UNWRITTEN):
        made = bench.arrive(f"r{number}")
        bench.histories.ended([made], bench.now_ns, by_client=True)
    assert len(bench.told) == MOST_UNWRITTEN


def test_those_who_wait_for_their_first_token_are_told_first(bench: Bench) -> None:
    for name in ("a", "b", "c", "waits"):
        bench.arrive(name)
    bench.step(new=["a", "b", "c"], ns=TOLD_AFTER_NS - ONE_IN_NS, a=100, b=100, c=100)
    bench.tokens("a", "b", "c")
    bench.now_ns += ONE_IN_NS
    bench.histories._log._told_ns = bench.now_ns - ONE_IN_NS
    bench.tokens()
    assert list(bench.told) == ["waits"]


def test_a_token_that_comes_while_a_prompt_is_computed_again_costs_nothing(bench: Bench) -> None:
    bench.arrive()
    bench.step(new=["r"], r=100)
    bench.step(preempted={"r"})
    bench.step(resumed=["r"], r=60)
    bench.tokens("r")
    bench.step(r=41)
    bench.tokens("r")
    bench.tokens("r", end="STOP")
    told = bench.told["r"]
    assert (told.first_token_ns - told.arrived_ns, told.recomputed_tokens) == (30_000_000, 100)
    assert Histories(bench.path).header.lost == 0


def test_only_requests_that_are_traced_have_a_span(bench: Bench) -> None:
    for name, headers in (("none", None), ("empty", {}), ("traced", TRACE)):
        bench.arrive(name, trace_headers=headers)
        bench.abort(name)
    [(_, _, _, attributes, context)] = bench.spans
    assert (attributes["headway.request_id"], context) == ("traced", TRACE)


def test_nothing_piles_up_that_ends_without_a_word(bench: Bench) -> None:
    for number in range(3000):
        made = bench.arrive(f"r{number}")
        bench.now_ns += 10**7
        bench.step(new=[made.request_id], ns=0, **{made.request_id: 50})
        bench.tokens()
        made.reason = "STOP"
    under_way, log = bench.histories._under_way, bench.histories._log
    assert len(bench.histories) < 600
    assert set(under_way.computing) | under_way.without_token <= set(under_way.requests)
    assert len(log._new) + len(log._again) < 1200


def test_an_id_that_comes_again_is_another_request(bench: Bench) -> None:
    bench.arrive().reason = "STOP"
    bench.engine.clear()
    bench.now_ns += 7 * SECOND
    bench.arrive()
    bench.now_ns += SECOND
    bench.abort("r")
    assert bench.told["r"].total_ns == SECOND


def test_a_step_without_work_is_no_step(bench: Bench) -> None:
    bench.arrive()
    bench.step()
    bench.abort("r")
    assert bench.told["r"].waited_steps == 0
