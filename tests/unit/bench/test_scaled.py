from __future__ import annotations

from dataclasses import replace

import pytest

from headway_runtime.bench.arms import HEADWAY
from headway_runtime.bench.catalogue import named
from headway_runtime.bench.command_line import parser, read_settings
from headway_runtime.bench.runs import Run
from headway_runtime.bench.scaled import TRUE_SCALE, Scale, scaled
from headway_runtime.bench.scenarios import Offer
from headway_runtime.bench.workload import Workload
from headway_runtime.policy import WhenUnmet
from headway_runtime.scheduling.origin import Call


def _workload(name: str) -> Workload:
    return named([name])[0].workload(Offer(1, 20_000, 5))


def test_the_true_scale_changes_nothing() -> None:
    workload = _workload("overload-200")
    assert scaled(workload, TRUE_SCALE) is workload


def test_objectives_are_longer_and_what_becomes_of_the_unmet_stays() -> None:
    found = scaled(_workload("overload-200"), Scale(slower=10)).classes
    assert [(c.name, c.ttft_ms, c.tpot_ms, c.deadline_s, c.when_unmet) for c in found] == [
        ("interactive", 10_000, 300, None, WhenUnmet.SHED),
        ("batch", None, None, 600, WhenUnmet.QUEUE),
    ]


def test_lengths_are_shorter_and_arrivals_stay() -> None:
    whole = _workload("overload-200")
    short = scaled(whole, Scale(shorter=8))
    assert [each.arrival_s for each in short.requests] == [r.arrival_s for r in whole.requests]
    assert short.tokens == pytest.approx(whole.tokens / 8, rel=0.02)
    assert all(each.prompt_tokens and each.output_tokens for each in short.requests)
    assert short.classes == whole.classes


def test_a_programs_deadline_and_pauses_are_longer_too() -> None:
    workload = _workload("overload-200")
    call = Call("program", "node", (), None, 30.0)
    request = replace(workload.requests[0], call=call, delay_s=2.0)
    found = scaled(replace(workload, requests=(request,)), Scale(slower=3)).requests[0]
    assert found.call == call._replace(deadline_s=90.0)
    assert found.delay_s == 6.0


def test_prompts_that_share_prefixes_cannot_be_shorter() -> None:
    with pytest.raises(ValueError, match="prefixes"):
        scaled(_workload("programs-tree"), Scale(shorter=2))


def test_shorter_requests_come_as_many_times_more_often() -> None:
    arguments = ["--out", "o", "--capacity-tokens-per-s", "2000", "--duration-s", "60"]
    run = Run("tiny", named(["overload-200"])[0], 1, HEADWAY)
    whole = read_settings(parser("run", None).parse_args(arguments), 0.0).workload(run)
    options = parser("run", None).parse_args([*arguments, "--shorter", "8", "--slower", "10"])
    settings = read_settings(options, 0.0)
    short = settings.workload(run)
    assert len(short.requests) == pytest.approx(8 * len(whole.requests), rel=0.3)
    told = settings.told(run.scenario)
    assert (told["capacity_tokens_per_s"], told["slower"], told["shorter"]) == (2000, 10, 8)
    assert "cores" in told["machine"]
    assert told["command"].startswith("python -m headway_runtime.bench.run")
