"""What becomes of requests, and how that is held against their classes' objectives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.exchange.histogram import bucket_of
from headway_runtime.executors.vllm.class_accounts import ClassAccounts
from headway_runtime.executors.vllm.request_histories import RequestHistories
from headway_runtime.policy import Policy, TrafficClass
from tests.unit.runtime.engines import core_output, request
from tests.unit.runtime.policies import policy

NOW_S = 1_700_000_000
CHAT = TrafficClass("chat", ttft_ms=500, tpot_ms=100)
BATCH = TrafficClass("batch", deadline_s=60)
FREE = TrafficClass("free")
POLICY = policy(1, 1, 1, classes=(CHAT, BATCH, FREE))


class Bench:
    """Accounts and a clock that starts at 0, in seconds."""

    def __init__(self, in_force: Policy | None = POLICY) -> None:
        self.accounts = ClassAccounts()
        self.accounts.adopt(in_force)
        self.histories = RequestHistories(self.accounts)
        self.requests: dict[str, Any] = {}

    def arrive(self, name: str, kind: str | None = "chat", at: float = 0.0, **other: Any) -> None:
        made = request(name, NOW_S + at, None if kind is None else {"headway_class": kind})
        for field, value in other.items():
            setattr(made, field, value)
        self.requests[name] = made
        self.histories.arrived(made, nanoseconds(at))

    def tokens(self, at: float, *names: str, count: int = 1, end: str | None = None) -> Any:
        for name in names:
            if name in self.requests:
                self.requests[name].num_output_tokens += count
        outputs = [core_output(name, count, end) for name in names]
        return self.histories.tokens_came({0: SimpleNamespace(outputs=outputs)}, nanoseconds(at))

    def end(self, at: float, name: str, reason: str | None = "ABORT", **how: Any) -> None:
        self.requests[name].reason = reason
        self.histories.ended([self.requests[name]], nanoseconds(at), **{"by_client": True, **how})

    def totals(self, name: str = "chat") -> tuple[int, int]:
        entry = self.accounts.table.entry(name)
        assert entry is not None
        return entry.requests, entry.attained

    def ratios(self, name: str, what: str) -> list[int]:
        windows = getattr(self.accounts.table.entry(name), what).windows
        return [bucket for bucket, count in enumerate(windows.both) for _ in range(count)]


def nanoseconds(at: float) -> int:
    return NOW_S * 10**9 + round(at * 1e9)


@pytest.mark.parametrize(
    ("kind", "first", "last", "attained"),
    [
        ("chat", 0.5, 0.9, 1),
        ("chat", 0.51, 0.9, 0),
        ("chat", 0.5, 0.94, 0),
        ("batch", 59.0, 60.0, 1),
        ("batch", 1.0, 60.1, 0),
        ("free", 1000.0, 2000.0, 1),
    ],
)
def test_a_request_attains_when_every_objective_of_its_class_is_met(
    kind: str, first: float, last: float, attained: int
) -> None:
    bench = Bench()
    bench.arrive("r", kind)
    bench.tokens(first, "r")
    bench.tokens(last, "r", count=4, end="STOP")
    assert bench.totals(kind) == (1, attained)


def test_time_to_first_token_counts_when_it_comes_and_time_per_token_at_the_end() -> None:
    bench = Bench()
    bench.arrive("r", at=1.0)
    bench.tokens(1.25, "r")
    assert (bench.ratios("chat", "ttft"), bench.ratios("chat", "tpot")) == ([bucket_of(0.5)], [])
    assert bench.totals() == (0, 0)
    for step in range(4):
        bench.tokens(1.4 + step / 10, "r")
    bench.tokens(2.25, "r", end="LENGTH")
    # Five gaps in one second, of 100 ms promised.
    assert bench.ratios("chat", "tpot") == [bucket_of(2.0)]
    assert len(bench.ratios("chat", "ttft")) == 1


def test_one_token_has_no_time_per_token() -> None:
    bench = Bench()
    bench.arrive("r")
    bench.tokens(0.1, "r", end="STOP")
    assert (bench.totals(), bench.ratios("chat", "tpot")) == ((1, 1), [])


def test_several_tokens_at_once_count_each() -> None:
    bench = Bench()
    bench.arrive("r")
    bench.tokens(0.1, "r", count=3)
    bench.tokens(0.5, "r", count=2, end="STOP")
    assert bench.ratios("chat", "tpot") == [bucket_of(1.0)]


def test_a_class_without_a_target_has_no_ratios() -> None:
    bench = Bench()
    bench.arrive("r", "free")
    bench.tokens(0.1, "r")
    bench.tokens(0.2, "r", end="STOP")
    assert bench.ratios("free", "ttft") == bench.ratios("free", "tpot") == []


def test_what_clients_give_up_is_left_out() -> None:
    bench = Bench()
    bench.arrive("waiting")
    bench.arrive("running")
    bench.tokens(0.1, "running")
    bench.end(0.2, "waiting")
    bench.end(0.2, "running")
    assert (bench.totals(), len(bench.histories)) == ((0, 0), 0)


def test_what_the_engine_gives_up_by_itself_is_missed() -> None:
    bench = Bench()
    bench.arrive("r", "free")
    bench.end(0.1, "r", by_client=False)
    assert bench.totals("free") == (1, 0)


@pytest.mark.parametrize("in_a_step", [True, False])
def test_an_error_is_missed_however_fast_it_came(in_a_step: bool) -> None:
    bench = Bench()
    bench.arrive("r", "free")
    if in_a_step:
        bench.tokens(0.1, "r", end="ERROR")
    else:
        bench.end(0.1, "r", "ERROR")
        # vLLM also tells it in the step's output.
        bench.tokens(0.1, "r", count=0, end="ERROR")
    assert bench.totals("free") == (1, 0)


def test_a_request_that_met_its_stop_string_has_ended_well() -> None:
    bench = Bench()
    for name in ("met", "not started"):
        bench.arrive(name)
        bench.requests[name].sampling_params.stop = ["\n"]
    bench.tokens(0.1, "met")
    bench.end(0.2, "met")
    bench.end(0.2, "not started")
    assert bench.totals() == (1, 1)


def test_a_request_that_ends_without_a_token_is_measured_to_its_end() -> None:
    bench = Bench()
    for name, end_s in (("soon", 0.4), ("late", 0.6)):
        bench.arrive(name)
        bench.tokens(end_s, name, count=0, end="STOP")
    assert (bench.totals(), bench.ratios("chat", "ttft")) == ((2, 1), [])


def test_requests_without_a_class_count_nowhere() -> None:
    bench = Bench()
    bench.arrive("none", None)
    bench.arrive("unknown", "unknown")
    bench.tokens(0.1, "none", "unknown", end="STOP")
    assert [bench.totals(name) for name in ("chat", "batch", "free")] == [(0, 0)] * 3


def test_the_default_class_is_a_class() -> None:
    bench = Bench(policy(1, 1, 1, classes=(FREE,), default_class="free"))
    bench.arrive("r", None)
    bench.tokens(0.1, "r", end="STOP")
    assert bench.totals("free") == (1, 1)


def test_without_a_policy_there_is_nothing_to_count_under() -> None:
    bench = Bench(None)
    bench.arrive("r")
    bench.tokens(0.1, "r", end="STOP")
    assert len(bench.histories) == 0


def test_sessions_are_left_out() -> None:
    bench = Bench()
    bench.arrive("session", resumable=True)
    bench.tokens(0.1, "session")
    bench.end(0.2, "session", "STOP")
    assert (bench.totals(), bench.ratios("chat", "ttft")) == ((0, 0), [])


def test_a_request_is_held_against_what_was_promised_when_it_arrived() -> None:
    bench = Bench()
    bench.arrive("r")
    stricter = TrafficClass("chat", ttft_ms=1, tpot_ms=1)
    bench.accounts.adopt(policy(1, 1, 2, classes=(stricter,)))
    bench.tokens(0.4, "r", end="STOP")
    assert bench.totals() == (1, 1)


def test_a_request_of_a_class_that_is_gone_counts_nowhere() -> None:
    bench = Bench()
    bench.arrive("r")
    bench.accounts.adopt(policy(1, 1, 2, classes=(BATCH,)))
    bench.tokens(0.1, "r")
    bench.tokens(0.2, "r", end="STOP")
    assert (bench.totals("batch"), len(bench.histories)) == ((0, 0), 0)


def test_a_change_of_policy_keeps_the_totals_of_classes_that_stay() -> None:
    bench = Bench()
    bench.arrive("r")
    bench.tokens(0.1, "r", end="STOP")
    bench.accounts.adopt(policy(1, 1, 2, classes=(TrafficClass("new"), CHAT)))
    assert (bench.totals(), bench.totals("new")) == ((1, 1), (0, 0))


def test_tokens_and_ends_of_a_step_are_told() -> None:
    bench = Bench()
    bench.arrive("r")
    assert bench.tokens(0.1, "r", "unknown", count=3) == (6, [])
    assert bench.tokens(0.2, "r", end="STOP") == (1, ["r"])


def test_a_clock_that_was_set_back_is_no_error() -> None:
    bench = Bench()
    bench.arrive("r", at=100.0)
    bench.tokens(1.0, "r")
    bench.tokens(0.5, "r", end="STOP")
    assert bench.totals() == (1, 1)


def test_requests_that_end_without_a_word_do_not_pile_up() -> None:
    bench = Bench()
    for number in range(10_000):
        bench.arrive(f"r{number}")
        if number >= 10:
            bench.requests.pop(f"r{number - 10}").reason = "STOP"
    assert len(bench.histories) < 600
    assert len(bench.histories._under_way.without_token) == len(bench.histories)


events = st.one_of(
    st.tuples(st.just("arrive"), st.sampled_from(["chat", "batch", "free", "none"])),
    st.tuples(st.just("token"), st.integers(0, 20)),
    st.tuples(st.just("end"), st.sampled_from(["STOP", "LENGTH", "ABORT", "ERROR"])),
    st.tuples(st.just("abort"), st.booleans()),
    st.tuples(st.just("adopt"), st.sampled_from([None, POLICY, policy(1, 1, 2, classes=(CHAT,))])),
)


@given(st.lists(events, max_size=80))
def test_whatever_happens_nothing_stays_when_all_have_ended(history: Any) -> None:
    bench, alive = Bench(), []
    for number, (what, value) in enumerate(history):
        at = number / 10
        if what == "arrive":
            bench.arrive(f"r{number}", value, at)
            alive.append(f"r{number}")
        elif what == "adopt":
            bench.accounts.adopt(value)
        elif alive and what == "token":
            bench.tokens(at, alive[value % len(alive)])
        elif alive and what == "end":
            bench.tokens(at, alive.pop(0), end=value)
        elif alive:
            bench.end(at, alive.pop(), by_client=value)
        assert len(bench.histories) <= len(alive)
        for name in ("chat", "batch", "free"):
            if bench.accounts.table.entry(name) is not None:
                requests, attained = bench.totals(name)
                assert 0 <= attained <= requests <= number
    for name in alive:
        bench.tokens(99.0, name, end="STOP")
    assert (len(bench.histories), bench.histories._under_way.without_token) == (0, set())
