from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.bench.analysis import (
    attained,
    histogram,
    percentiles,
    summary,
    token_deadline_misses,
)
from headway_runtime.bench.outcome import Ending
from headway_runtime.bench.requests_table import table
from headway_runtime.policy import TrafficClass
from tests.unit.bench.outcomes import BATCH, CHAT, outcome


@pytest.mark.parametrize(
    ("token_s", "expected"),
    [
        ((1.0, 1.1, 1.2), True),
        ((1.001, 1.1, 1.2), False),  # first token late
        ((0.5, 0.51, 0.71), False),  # 105 ms a token
        ((0.5, 0.69, 0.70), True),  # one long gap, 100 ms on average
        ((0.9,), True),  # no second token, no TPOT
    ],
)
def test_a_request_attains_when_all_its_objectives_are_met(
    token_s: tuple[float, ...], expected: bool
) -> None:
    assert attained(outcome(*token_s), CHAT) is expected


def test_a_deadline_is_held_against_the_end() -> None:
    assert attained(outcome(8.0, 10.0), BATCH)
    assert not attained(outcome(8.0, 10.01), BATCH)


@pytest.mark.parametrize("ending", [Ending.REFUSED, Ending.FAILED, Ending.TIMED_OUT])
def test_nothing_but_a_complete_request_attains(ending: Ending) -> None:
    assert not attained(outcome(0.5, 0.6, ending=ending), TrafficClass("free"))


def test_tokens_are_due_at_the_pace_of_the_class() -> None:
    # Due at 1.0, 1.1, 1.2, 1.3 s.
    assert token_deadline_misses(outcome(0.9, 1.15, 1.2, 1.31), CHAT) == (2, 4)
    assert token_deadline_misses(outcome(0.9, output_tokens=4), CHAT) == (3, 4)
    assert token_deadline_misses(outcome(99.0), BATCH) == (0, 0)


def test_percentiles_are_values_that_were_measured() -> None:
    assert percentiles([5.0, 1.0, 2.0, 4.0, 3.0]) == {"p50": 3.0, "p90": 5.0, "p99": 5.0}
    assert percentiles(list(range(1, 101))) == {"p50": 50, "p90": 90, "p99": 99}
    assert percentiles([]) == {"p50": None, "p90": None, "p99": None}


def test_a_histogram_counts_up_to_each_bound_and_above_the_last() -> None:
    assert histogram([0.5, 1.0, 1.5, 2.0, 9.0], (1, 2)) == [2, 2, 1]
    assert histogram([], (1, 2)) == [0, 0, 0]


@given(st.lists(st.floats(0, 1e4), max_size=50))
def test_a_histogram_counts_everything_once(values: list[float]) -> None:
    assert sum(histogram(values, (1, 10, 100))) == len(values)


RUN = [
    outcome(0.5, 0.6, 0.7),
    outcome(3.0, 3.1, sent_s=1.0, planned_s=0.9),
    outcome(6.0, 7.0, 12.0, class_name="batch", prompt_tokens=1000, sent_s=4.0, planned_s=4.0),
    outcome(ending=Ending.REFUSED, ended_s=5.1, sent_s=5.0, planned_s=5.0, output_tokens=3),
]


def test_a_run_in_figures() -> None:
    figures = summary(RUN, (CHAT, BATCH), duration_s=10.0)
    assert figures["requests"] == 4
    ended = {name: count for name, count in figures["endings"].items() if count}
    assert ended == {"complete": 3, "refused": 1}
    assert figures["attainment"] == 0.5
    assert figures["classes"]["chat"]["attainment"] == pytest.approx(1 / 3, abs=1e-4)
    assert figures["classes"]["batch"]["attainment"] == 1.0
    assert figures["ttft_ms"] == {"p50": 2000.0, "p90": 2000.0, "p99": 2000.0}
    assert figures["longest_stall_ms"] == 5000.0
    assert figures["together_share"] == 0.0
    assert figures["classes"]["batch"]["latency_s"]["p50"] == 8.0
    assert figures["client_lateness_ms"]["p99"] == 100.0
    # 8 output tokens and 1,200 prompt tokens in 12 s; all but the last token in the window.
    assert figures["drain_s"] == 12.0
    assert figures["output_tokens_per_s"] == pytest.approx(8 / 12, abs=0.05)
    assert figures["tokens_per_s"] == pytest.approx(1208 / 12, abs=0.05)
    assert figures["window_output_tokens_per_s"] == 0.7
    assert figures["window_tokens_per_s"] == 120.7
    assert figures["goodput_requests_per_s"] == 0.2
    assert figures["goodput_tokens_per_s"] == pytest.approx((103 + 1003) / 10)
    # Chat: due 1.0 1.1 1.2 all in time; 2.0 2.1 both late; 3 that never came.
    assert figures["token_deadline_miss_share"] == pytest.approx(5 / 8)
    assert (figures["open_at_half"], figures["open_at_end"]) == (2, 1)
    assert figures["backlog_grows"] is False


def test_the_middle_of_a_run_is_without_its_ramp_and_tail() -> None:
    # 100 tokens: one a second, then ten a second, then one a second.
    times_s = [float(each) for each in range(5)]
    times_s += [4.1 + each / 10 for each in range(80)]
    times_s += [13.0 + each for each in range(15)]
    run = [outcome(time_s, prompt_tokens=0) for time_s in times_s]
    assert summary(run, (CHAT,), 0.0)["middle_tokens_per_s"] == pytest.approx(10.0)
    assert summary([outcome(1.0)], (CHAT,), 0.0)["middle_tokens_per_s"] is None


def test_latency_counts_the_given_up_with_their_time_and_the_refused_not() -> None:
    given_up = outcome(ending=Ending.TIMED_OUT, ended_s=60.0, output_tokens=5)
    refused = outcome(ending=Ending.REFUSED, ended_s=0.1, output_tokens=5)
    figures = summary([outcome(2.0), given_up, given_up, refused], (CHAT,), 10.0)
    assert figures["latency_s"]["p50"] == 60.0


def test_tokens_that_come_together_are_told() -> None:
    assert summary([outcome(1.0, 1.0, 1.0, 2.0, 2.1)], (CHAT,), 5.0)["together_share"] == 0.5


def test_a_backlog_that_grows_is_told() -> None:
    pile = [outcome(50.0, planned_s=each / 10, sent_s=each / 10) for each in range(100)]
    assert summary(pile, (CHAT,), duration_s=10.0)["backlog_grows"] is True


def test_a_run_without_requests_or_window_has_figures_too() -> None:
    empty = summary([], (CHAT,), duration_s=0.0)
    assert (empty["attainment"], empty["tokens_per_s"], empty["backlog_grows"]) == (None,) * 3
    offline = summary([outcome(1.0, 2.0)], (CHAT,), duration_s=0.0)
    assert offline["tokens_per_s"] == 51.0
    assert offline["window_tokens_per_s"] is None


def test_the_table_holds_every_request() -> None:
    columns = table(RUN, (CHAT, BATCH))
    assert {len(columns[name]) for name in columns if name != "class_names"} == {4}
    assert columns["class"] == [0, 0, 1, 0]
    assert columns["ending"] == ["c", "c", "c", "r"]
    assert columns["attained"] == [1, 0, 1, 0]
    assert columns["ttft_ms"] == [500.0, 2000.0, 2000.0, None]
    assert columns["longest_gap_ms"] == [100.0, 100.0, 5000.0, None]
