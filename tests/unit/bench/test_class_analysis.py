"""Figures about admission, shares and programs, on outcomes made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.bench.classes.admission import admission_figures
from headway_runtime.bench.classes.completions import completion_figures
from headway_runtime.bench.classes.service import Service, most_running_output_tokens
from headway_runtime.bench.classes.sharing import jain_index, sharing_figures
from headway_runtime.bench.outcome import Ending, Outcome
from headway_runtime.policy import Tenant, WhenUnmet
from tests.unit.bench.outcomes import BATCH, CHAT, outcome

SHED_CHAT = replace(CHAT, when_unmet=WhenUnmet.SHED)
A, B = Tenant("a"), Tenant("b")


def refused(after_s: float = 0.02, **fields: object) -> Outcome:
    return outcome(ending=Ending.REFUSED, output_tokens=2, ended_s=after_s, **fields)


def test_only_accepted_requests_count_for_their_attainment() -> None:
    sent = [
        outcome(0.5, 0.55),
        outcome(0.5, 0.55),
        outcome(1.5, 1.55),
        refused(0.02),
        refused(0.04),
        outcome(ending=Ending.UNSENT, output_tokens=2),
        outcome(20.0, 20.1, class_name="batch"),
    ]
    figures = admission_figures(sent, (SHED_CHAT, BATCH))
    assert (figures["accepted"], figures["refused"]) == (4, 2)
    assert figures["accepted_attainment"] == 0.5
    assert figures["shed"]["accepted_attainment"] == 0.6667
    assert figures["shed"] == figures["classes"]["chat"]
    assert figures["shed"]["refusal_ms"] == {"p50": 20.0, "p90": 40.0, "p99": 40.0}
    assert figures["classes"]["batch"]["accepted_attainment"] == 0.0
    assert figures["classes"]["batch"]["refusal_ms"]["p99"] is None


def test_what_failed_or_was_given_up_was_accepted() -> None:
    sent = [
        outcome(ending=Ending.FAILED, output_tokens=2),
        outcome(ending=Ending.TIMED_OUT, output_tokens=2),
    ]
    assert admission_figures(sent, (SHED_CHAT,))["shed"]["accepted_attainment"] == 0.0


def test_jains_index_of_known_shares() -> None:
    assert jain_index([3.0, 3.0, 3.0]) == pytest.approx(1.0)
    assert jain_index([6.0, 0.0, 0.0]) == pytest.approx(1 / 3)
    assert jain_index([1.0, 2.0]) == pytest.approx(0.9)
    assert jain_index([0.0, 0.0]) is None


@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=9), st.floats(0.01, 100))
def test_jains_index_has_bounds_and_no_unit(values: list[float], unit: float) -> None:
    index = jain_index(values)
    assert index is not None
    assert 1 / len(values) - 1e-9 <= index <= 1 + 1e-9
    assert jain_index([unit * each for each in values]) == pytest.approx(index)


def test_service_counts_prompts_at_the_first_token_and_output_tokens_double() -> None:
    served = Service([outcome(1.0, 2.0, 3.0), outcome(2.0, prompt_tokens=10)])
    assert served.until([0.5, 1.0, 2.5, 9.0]).tolist() == [0, 102, 102 + 2 + 12, 118]
    assert served.between(1.0, 2.0) == 14


def test_a_tenant_waits_while_a_request_of_its_has_no_first_token() -> None:
    served = Service([outcome(1.0, 2.0), outcome(3.0, sent_s=0.5), refused(), refused()])
    assert served.waiting([0.2, 0.7, 1.5, 3.5]).tolist() == [1, 2, 1, 0]


def test_tokens_of_requests_that_run_together() -> None:
    sent = [outcome(1.0, 2.0, 3.0), outcome(2.5, 2.6), outcome(4.0, 5.0), refused()]
    # Just before the first one ends it has 3 and the second, which has ended, none.
    assert most_running_output_tokens(sent) == 4
    assert most_running_output_tokens([]) == 0


def stream(tenant: str, gap_s: float, end_s: float, **fields: object) -> list[Outcome]:
    """Requests of 100 + 2 tokens, all there at the start, served one after the other."""
    count = int(end_s / gap_s)
    return [
        outcome((n + 1) * gap_s, tenant=tenant, **fields)  # type: ignore[arg-type]
        for n in range(count)
    ]


def test_equal_service_is_fair() -> None:
    figures = sharing_figures([*stream("a", 0.5, 21), *stream("b", 0.5, 21)], (A, B), (CHAT,))
    assert figures["jain_index"] == figures["jain_index_worst"] == 1.0
    assert figures["jain_windows"] == 4
    assert figures["tenants"]["a"]["service_share"] == 0.5
    assert figures["beyond_bound"] == 0
    assert abs(figures["longest_lag_tokens"]) <= 102


def test_service_is_compared_over_weights() -> None:
    sent = [*stream("a", 0.5, 20.6), *stream("b", 0.25, 20.6)]
    assert sharing_figures(sent, (A, B), (CHAT,))["jain_index"] == pytest.approx(0.9, abs=0.01)
    weighted = sharing_figures(sent, (A, Tenant("b", 2)), (CHAT,))
    assert weighted["jain_index"] == pytest.approx(1.0, abs=0.001)


def test_windows_in_which_somebody_does_not_wait_tell_nothing() -> None:
    sent = [*stream("a", 0.5, 20.6), *stream("b", 0.25, 12)]
    assert sharing_figures(sent, (A, B), (CHAT,))["jain_windows"] == 2
    alone = sharing_figures(stream("a", 0.5, 20), (A, B), (CHAT,))
    assert (alone["jain_index"], alone["jain_windows"]) == (None, 0)


def test_a_request_is_beyond_its_bound_when_others_got_its_share_while_it_waited() -> None:
    def lag(wait_s: float) -> tuple[int, int]:
        late = outcome(wait_s, tenant="b")
        figures = sharing_figures([*stream("a", 0.1, 30), late], (A, B), (CHAT,))
        # The longest prompt has 100 tokens, no two requests run together.
        assert figures["bound_tokens"] == 400
        return figures["beyond_bound"], figures["longest_lag_tokens"]

    # 5 and 50 requests of 102 tokens, and its own; half of that was its share.
    assert lag(0.55) == (0, 3 * 102 - 102)
    assert lag(5.05) == (1, 51 * 51 - 102)


def test_waits_of_a_tenant_are_told() -> None:
    sent = [outcome(0.5, 0.55, tenant="a"), outcome(8.0, 8.1, tenant="a", sent_s=1.0)]
    of_a = sharing_figures(sent, (A,), (CHAT,))["tenants"]["a"]
    assert of_a["attainment"] == 0.5
    assert of_a["longest_wait_s"] == 7.0
    assert of_a["wait_s"]["p50"] == 0.5


def call(program: str, sent_s: float, ended_s: float, **fields: object) -> Outcome:
    defaults = {"program": program, "sent_s": sent_s, "planned_s": sent_s, "tenant": "a"}
    return outcome(ended_s, **{**defaults, **fields})  # type: ignore[arg-type]


def test_a_program_takes_from_its_first_call_to_the_end_of_its_last() -> None:
    sent = [
        call("p", 1.0, 2.0),
        call("p", 2.5, 6.0),
        call("q", 0.0, 1.0, tenant="b"),
        outcome(99.0),
    ]
    figures = completion_figures(sent)
    assert (figures["programs"], figures["unfinished"]) == (2, 0)
    assert figures["completion_s"] == {"p50": 1.0, "p95": 5.0, "mean": 3.0}
    assert figures["tenants"]["a"]["completion_s"]["p50"] == 5.0
    assert figures["tenants"]["b"]["completion_s"]["p50"] == 1.0


def test_programs_of_two_tenants_are_two_whatever_their_names() -> None:
    assert completion_figures([call("p", 0, 1), call("p", 0, 1, tenant="b")])["programs"] == 2


def test_an_unfinished_program_takes_until_the_end_of_the_run_at_least() -> None:
    sent = [
        call("p", 1.0, 2.0),
        outcome(program="p", tenant="a", ending=Ending.UNSENT, output_tokens=2, sent_s=30.0),
        call("q", 0.0, 30.0),
    ]
    figures = completion_figures(sent)
    assert figures["unfinished"] == 1
    assert figures["completion_s"]["p50"] == 29.0


def test_without_programs_there_are_no_figures() -> None:
    figures = completion_figures([outcome(1.0)])
    assert figures["programs"] == 0
    assert figures["completion_s"] == {"p50": None, "p95": None, "mean": None}
