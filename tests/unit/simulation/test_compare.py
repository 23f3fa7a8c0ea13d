"""Comparing ways to schedule: the workload, the figures, and what arms are known to do."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from headway_runtime.executors.simulated.arms import ARMS
from headway_runtime.executors.simulated.compare import Scenario, main, simulate
from headway_runtime.executors.simulated.request import Arrival, Request
from headway_runtime.executors.simulated.results import Results
from headway_runtime.executors.simulated.step_log import read
from headway_runtime.executors.simulated.workload import Workload
from headway_runtime.policy import TrafficClass


def test_a_workload_is_what_it_says() -> None:
    workload = Workload(30, 4, seconds=100, tight_share=0.25, long_share=0.1, cached_share=0.5)
    sent = list(workload.arrivals(1))
    assert sent == list(workload.arrivals(1)) != list(workload.arrivals(2))
    assert [each.at for each in sent] == sorted(each.at for each in sent)
    counts = Counter(each.class_name for each in sent)
    assert counts["chat"] + counts["chat-tight"] == pytest.approx(3000, rel=0.1)
    assert counts["chat-tight"] == pytest.approx(750, rel=0.15)
    assert counts["batch"] == pytest.approx(400, rel=0.2)
    chat = [each for each in sent if each.class_name != "batch"]
    assert sum(each.prompt_tokens == 32_000 for each in chat) == pytest.approx(300, rel=0.2)
    assert all(each.cached_tokens == each.prompt_tokens // 2 for each in chat)
    assert {each.name for each in workload.classes} == set(counts)
    more_batch = replace(workload, batch_per_second=9).arrivals(1)
    assert [each for each in more_batch if each.class_name != "batch"] == chat


def test_figures_are_those_of_the_tokens() -> None:
    results = Results()
    for number, (at, times) in enumerate([(0.0, [1.0, 1.5, 3.0]), (1.0, [1.2, 1.3, 1.4])]):
        request = Request(str(number), Arrival(at, "chat", 10, 3))
        for each in times:
            request.known += 1
            results.token(request, each)
            request.first_token_at = request.first_token_at or each
    promised = TrafficClass("chat", ttft_ms=1000, tpot_ms=500)
    found = results.figures([promised], {"chat": 4}, preemptions=7)
    chat = found.classes["chat"]
    assert (chat.sent, chat.ended, chat.attainment) == (4, 2, 0.25)
    assert chat.ttft_s[0] == pytest.approx(0.6)
    assert chat.tpot_s[0] == pytest.approx((1.0 + 0.1) / 2)
    assert chat.itl_s[0] == pytest.approx((0.1 + 0.5) / 2)
    assert chat.e2e_s[0] == pytest.approx((3.0 + 0.4) / 2)
    assert found.tokens_per_s == pytest.approx(2 * 13 / 3)
    assert (found.drain_s, found.preemptions) == (3.0, 7)


def attainments(scenario: Scenario, *arms: str) -> list[float]:
    return [simulate(scenario, ARMS[arm], 1)[1].classes["chat"].attainment for arm in arms]


def test_arms_stand_to_each_other_as_on_a_gpu() -> None:
    """At 22 + 2.75 requests/s: a large budget misses TPOT, a small one in order of arrival TTFT."""
    scenario = Scenario(Workload(22, 2.75, seconds=20))
    stock, small, small_by_priority = attainments(scenario, "stock", "fcfs-512", "priority-512")
    assert stock < 0.5
    assert small < 0.6
    assert small_by_priority > 0.98


def test_static_batches_are_worst() -> None:
    scenario = Scenario(Workload(10, 1.25, seconds=10))
    stock, static = attainments(scenario, "stock", "static-64")
    assert stock > 0.95
    assert static < 0.5


def test_the_command_line_prints_a_row_for_each_run_and_logs_its_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = "--load 3+0.5 2 --arms stock planner --seeds 1 2 --seconds 3 --logs"
    main([*arguments.split(), str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["3+0.5", "arm"] + ["stock"] * 2 + [
        "planner"
    ] * 2 + ["2", "arm"] + ["stock"] * 2 + ["planner"] * 2
    assert len({line.count("|") for line in lines if "|" in line}) == 1
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        f"{arm}-{seed}.csv" for arm in ("planner", "stock") for seed in (1, 2)
    ]
    assert len(read(tmp_path / "stock-1.csv")) > 50
