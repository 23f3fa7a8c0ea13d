from __future__ import annotations

import math
from itertools import pairwise
from statistics import fmean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.bench import mixes
from headway_runtime.bench.lengths import Lengths, Lognormal, fixed
from headway_runtime.bench.prompts import FIRST_TOKEN_ID, LAST_TOKEN_ID, prompt_token_ids
from headway_runtime.bench.traces import PREFIX_BLOCK_TOKENS
from headway_runtime.bench.workload import (
    Request,
    generator,
    mean_tokens_per_request,
    mixed_workload,
    offline_workload,
    poisson_arrivals,
)

quantiles = st.floats(1e-9, 1 - 1e-9)


@given(quantiles, quantiles)
def test_lengths_stay_inside_their_bounds_and_grow_with_the_quantile(a: float, b: float) -> None:
    for lengths in (Lengths(10, 90), Lognormal(16, 4096, median=490, sigma=0.75)):
        low, high = sorted((a, b))
        assert lengths.low <= lengths.at(low) <= lengths.at(high) <= lengths.high


def test_half_of_lognormal_lengths_are_below_their_median() -> None:
    lengths = Lognormal(1, 100_000, median=490, sigma=0.75)
    assert lengths.at(0.5) == 490
    assert lengths.mean() == pytest.approx(490 * math.exp(0.75**2 / 2), rel=0.01)


def test_fixed_lengths_are_all_the_same() -> None:
    assert {fixed(7).at(quantile) for quantile in (0.1, 0.5, 0.9)} == {7}


def test_arrivals_are_poisson() -> None:
    arrivals = list(poisson_arrivals(20.0, 1000.0, generator(1)))
    assert all(0 <= earlier < later < 1000 for earlier, later in pairwise(arrivals))
    # 20,000 expected; six standard deviations of a Poisson count.
    assert len(arrivals) == pytest.approx(20_000, abs=6 * math.sqrt(20_000))
    counts = [0] * 1000
    for time_s in arrivals:
        counts[int(time_s)] += 1
    variance = fmean((count - fmean(counts)) ** 2 for count in counts)
    # The variance of a Poisson count is its mean; of evenly spaced arrivals it would be 0.
    assert variance / fmean(counts) == pytest.approx(1, abs=0.25)


def test_equal_seeds_give_equal_workloads_and_others_do_not() -> None:
    first, again, other = (mixed_workload(mixes.standard(), 10, 30, seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_mix_has_its_shares_and_lengths() -> None:
    workload = mixed_workload(mixes.standard(), 50, 400, seed=3)
    of_class = {
        name: [each for each in workload.requests if each.class_name == name]
        for name in ("interactive", "batch")
    }
    assert len(of_class["interactive"]) / len(of_class["batch"]) == pytest.approx(8, rel=0.15)
    assert median(each.prompt_tokens for each in of_class["interactive"]) == pytest.approx(
        490, rel=0.05
    )
    assert median(each.output_tokens for each in of_class["interactive"]) == pytest.approx(
        134, rel=0.05
    )
    assert all(2000 <= each.prompt_tokens <= 8000 for each in of_class["batch"])
    assert workload.tokens / len(workload.requests) == pytest.approx(
        mean_tokens_per_request(mixes.standard()), rel=0.05
    )


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_a_batch_share_is_one_of_tokens(share: float) -> None:
    workload = mixed_workload(mixes.with_batch_share(share), 30, 1000, seed=4)
    batch = sum(
        each.prompt_tokens + each.output_tokens
        for each in workload.requests
        if each.class_name == "batch"
    )
    assert batch / workload.tokens == pytest.approx(share, abs=0.04)


def test_offline_requests_are_all_there_at_the_start() -> None:
    workload = offline_workload(mixes.without_objectives(), 40, seed=1)
    assert [each.arrival_s for each in workload.requests] == [0.0] * 40
    # Two streams of one class, which a policy may name once.
    assert workload.classes == (mixes.OFFLINE,)


def request(prompt_tokens: int, seed: int = 1, *blocks: int) -> Request:
    return Request(0.0, "chat", prompt_tokens, 10, seed, blocks)


@given(st.integers(1, 3000), st.integers(0, 2**40), st.lists(st.integers(0, 99), max_size=5))
def test_prompts_have_their_length_and_no_special_tokens(
    tokens: int, seed: int, blocks: list[int]
) -> None:
    ids = prompt_token_ids(request(tokens, seed, *blocks))
    assert len(ids) == tokens
    assert all(FIRST_TOKEN_ID <= each < LAST_TOKEN_ID for each in ids)
    assert ids == prompt_token_ids(request(tokens, seed, *blocks))


def test_prompts_share_exactly_the_blocks_they_have_in_common() -> None:
    first = prompt_token_ids(request(2000, 1, 5, 6, 7))
    second = prompt_token_ids(request(2000, 2, 5, 6, 8))
    shared = 2 * PREFIX_BLOCK_TOKENS
    assert first[:shared] == second[:shared]
    assert first[shared : shared + 32] != second[shared : shared + 32]


def test_prompts_without_blocks_share_nothing() -> None:
    assert prompt_token_ids(request(100, 1))[:16] != prompt_token_ids(request(100, 2))[:16]
