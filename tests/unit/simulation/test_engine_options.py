"""What engines do without a plan: orders, thresholds, static batches."""

from __future__ import annotations

import pytest

from headway_runtime.executors.simulated.options import EngineOptions
from headway_runtime.executors.simulated.request import Arrival
from headway_runtime.policy import Policy, Scope, Stamp
from headway_runtime.scheduling.view import Limits
from tests.unit.simulation.watched import CHAT, Watch, engine


def order_of_first_tokens(watch: Watch) -> list[str]:
    return sorted(watch.tokens, key=lambda name: watch.tokens[name][0])


def test_priority_decides_who_is_admitted_and_who_loses_blocks() -> None:
    options = EngineOptions(priorities={"chat": 0, "batch": 1})
    sent = [
        Arrival(0.001 * each, name, 64, 64) for each, name in enumerate(["batch"] * 2 + ["chat"])
    ]
    made, watch = engine(*sent, options=options, ceilings=Limits(64, 256))
    made.run_to_the_end(10.0)
    assert order_of_first_tokens(watch)[:2] == ["1", "3"]
    made, watch = engine(*sent, options=options, blocks=12)
    made.run_to_the_end(10.0)
    assert made.report().preemptions_total > 0
    assert watch.tokens["3"][-1] < watch.tokens["2"][-1]
    with pytest.raises(ValueError, match="order of arrival"):
        made.adopt(Policy(Scope("s"), Stamp(1, 0, 0), classes=(CHAT,)))


def test_the_long_prefill_threshold_leaves_room_for_others_and_holds_for_none_alone() -> None:
    options = EngineOptions(long_prefill_tokens=100)
    made, watch = engine(Arrival(0.0, "chat", 500, 2), options=options)
    made.run_to_the_end(1.0)
    assert watch.steps[0].step.tokens == 500
    made, watch = engine(*[Arrival(0.0, "chat", 500, 2)] * 2, options=options)
    made.run_to_the_end(1.0)
    assert [tokens for _, tokens in watch.steps[0].step.chunks] == [100, 100]


def test_a_static_batch_waits_until_all_of_it_has_ended() -> None:
    sent = [Arrival(0.0, "batch", 10, 5 * (1 + each)) for each in range(4)]
    made, watch = engine(
        *sent, Arrival(0.001, "batch", 10, 1), options=EngineOptions(static_batch=2)
    )
    made.run_to_the_end(10.0)
    times = watch.tokens
    assert times["3"][0] > max(times["1"][-1], times["2"][-1])
    assert times["5"][0] > max(times["3"][-1], times["4"][-1])


@pytest.mark.parametrize(("whole", "admitted"), [(True, 1), (False, 2)])
def test_a_request_is_admitted_when_all_its_tokens_fit(whole: bool, admitted: int) -> None:
    sent = [Arrival(0.0, "batch", 100, 1)] * 2
    options = EngineOptions(reserve_full_prompt=whole)
    made, _ = engine(*sent, blocks=11, options=options, ceilings=Limits(150, 8))
    made.run(0.001)
    assert len(made._batch.running) == admitted
