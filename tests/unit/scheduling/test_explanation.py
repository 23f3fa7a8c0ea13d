"""Why a request was slow, in words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.scheduling.history.explanation import explain
from headway_runtime.scheduling.history.lifecycle import State
from headway_runtime.scheduling.history.summary import RequestSummary, Yielded
from headway_runtime.scheduling.history.work_done import OTHERS, REASONS
from headway_runtime.scheduling.reason import Reason

S = 10**9
SLOW = RequestSummary(
    "r",
    class_name="batch",
    state=State.FINISHED,
    arrived_ns=S,
    taken_in_ns=S + 20_000_000,
    admitted_ns=S + 1_900_000_000,
    first_token_ns=S + 2_300_000_000,
    ended_ns=S + 3_700_000_000,
    given_up_ns=2 * S,
    waiting_ns=1_900_000_000,
    prefilling_ns=400_000_000,
    decoding_ns=1_400_000_000,
    ttft_ms=500,
    tpot_ms=30,
    prompt_tokens=3000,
    cached_tokens=96,
    output_tokens=101,
    chunks=2,
    chunk_tokens=2904,
    largest_chunk_tokens=2048,
    waited_steps=120,
    beside_tokens=70,
    yielded_tokens=42_000,
    yielded=(Yielded("interactive", "", 41_000), Yielded("batch", "key-1", 900)),
    reasons=((REASONS.index(Reason.CLASS_LIMIT), 80),),
)


def test_the_answer_tells_all_shares_largest_first() -> None:
    waiting = (
        "1.9 s of 3.7 s waiting to be admitted: 20 ms passed before the engine looked, these "
        "prompt tokens went first in 120 steps: 41,000 of class interactive, 900 of class batch "
        "(tenant key-1), 100 of others; its own TTFT was given up after 1.0 s; plans until its "
        "first token: ClassLimit in 80 steps."
    )
    prefilling = (
        "400 ms of 3.7 s computing its prompt: 2,904 tokens in 2 parts, the largest of 2,048; "
        "96 more were in the cache; 70 prompt tokens of others were computed beside."
    )
    assert explain(SLOW) == (
        "Its first token came 2.3 s after its arrival (500 ms were promised).",
        "After 3.7 s it was complete.",
        waiting,
        "1.4 s of 3.7 s generating 101 tokens, 14.0 ms each (30 ms were promised).",
        prefilling,
    )


def test_preemptions_are_told_with_what_they_cost() -> None:
    [*_, preempted] = explain(
        SLOW._replace(
            waiting_ns=0,
            prefilling_ns=0,
            decoding_ns=0,
            preempted_ns=S,
            preemptions=2,
            recomputed_tokens=4000,
        )
    )
    assert preempted.startswith(
        "1.0 s of 1.0 s waiting again after it had lost its KV blocks 2 times; these prompt tokens"
    )
    assert preempted.endswith("; 4,000 tokens were computed again.")


def test_a_request_that_waited_while_no_prompt_ran_blames_nobody() -> None:
    told = SLOW._replace(yielded_tokens=0, yielded=(), waited_steps=1, given_up_ns=0, reasons=())
    assert "no prompt of others was computed in 1 step that ran meanwhile." in explain(told)[2]


def test_a_request_under_way_says_where_it_is() -> None:
    told = RequestSummary("r", state=State.WAITING, arrived_ns=S, taken_in_ns=S, since_ns=S)
    assert explain(told.at(3 * S)) == (
        "No token of it has come.",
        "It is waiting, 2.0 s after its arrival.",
        "2.0 s of 2.0 s waiting to be admitted.",
    )


def test_others_and_requests_without_a_class_have_a_name_as_well() -> None:
    told = SLOW._replace(yielded=(Yielded("", "", 1), Yielded("chat", OTHERS, 2)))
    assert "1 of no class, 2 of class chat (other tenants)" in explain(told)[2]


counts = st.integers(0, 2**32 - 1)
times = st.integers(0, 2**62)


@given(
    st.builds(
        RequestSummary,
        request_id=st.text(max_size=9),
        state=st.sampled_from([int(each) for each in State]),
        **dict.fromkeys(("arrived_ns", "first_token_ns", "taken_in_ns", "given_up_ns"), times),
        **dict.fromkeys(("waiting_ns", "prefilling_ns", "decoding_ns", "preempted_ns"), times),
        **dict.fromkeys(("paused_ns", "yielded_tokens"), times),
        **dict.fromkeys(("chunks", "output_tokens", "preemptions", "turns", "tpot_ms"), counts),
        reasons=st.lists(st.tuples(st.integers(0, 255), counts), max_size=3).map(tuple),
    )
)
def test_everything_can_be_explained(told: RequestSummary) -> None:
    sentences = explain(told)
    assert all(each.endswith(".") for each in sentences)
    assert len(sentences) == 2 + sum(each >= 1_000_000 for each in told.ns_in)
