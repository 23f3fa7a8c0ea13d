from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway_runtime.bench import report, results
from headway_runtime.bench.aggregate import cells
from headway_runtime.bench.analysis import summary
from headway_runtime.bench.catalogue import named
from headway_runtime.bench.headline import headline, single_static
from headway_runtime.bench.requests_table import table
from tests.unit.bench.outcomes import CHAT, outcome

KEYS = {
    *("scenarios", "worst_attainment_gap_vs_tuned", "worst_tokens_ratio_vs_tuned"),
    *("share_ahead_of_single_static", "goodput_of_bound", "offline_throughput_ratio"),
    *("static_throughput_ratio", "static_latency_ratio", "static_goodput_ratio"),
    *("static_goodput_ratio_is_lower_bound", "model_error_median"),
}


def result(
    scenario: str, arm: str, attainment: float, tokens: float = 1000, **fields: Any
) -> dict[str, Any]:
    """A run with made-up figures over those of a real one."""
    (known,) = named([scenario])
    outcomes = [outcome(0.5, 0.6, 0.7), outcome(2.0, 2.1)]
    figures = summary(outcomes, (CHAT,), 10.0)
    latency_s = fields.pop("latency_s", 1.0)
    figures |= {"attainment": attainment, "tokens_per_s": tokens}
    figures["latency_s"] = {"p50": latency_s}
    figures["backlog_grows"] = fields.pop("backlog_grows", False)
    defaults: dict[str, Any] = {
        "shape": "qwen3-8b",
        "scenario": scenario,
        "family": known.family,
        "load": known.load,
        "seed": 1,
        "arm": arm,
        "is_control": False,
        "engine_version": "0.26.0",
        "engine_started_s": 100,
        "async_scheduling": True,
        "gpu": "NVIDIA H200",
        "gpu_busy_percent": 97.0,
        "steps": None,
        "plans": None,
        "summary": figures,
        "requests": table(outcomes, (CHAT,)),
    }
    made = {**defaults, **fields}
    made["name"] = f"{made['shape']}.{scenario}.s{made['seed']}.{arm}.{made['is_control']}"
    return made


def figures(*runs: dict[str, Any]) -> dict[str, Any]:
    return headline(cells(runs), runs)


def test_nothing_measured_gives_nothing() -> None:
    found = figures()
    assert set(found) == KEYS
    assert found.pop("scenarios") == 0
    assert set(found.values()) == {None}


def test_the_best_setting_of_each_scenario_is_the_one_to_beat() -> None:
    found = figures(
        result("load-70", "headway", 0.99, 980),
        result("load-70", "stock-512-priority", 0.98, 1000),
        result("load-70", "stock-768-priority", 0.978, 1010),
        result("load-70", "stock-8192-fcfs", 0.40, 1200),
        result("tpot-15", "headway", 0.90, 900),
        result("tpot-15", "stock-384-priority", 0.92, 900),
    )
    assert found["scenarios"] == 2
    assert found["worst_attainment_gap_vs_tuned"] == -2.0
    # Attainments within half a point are equal, and then tokens decide.
    assert found["worst_tokens_ratio_vs_tuned"] == pytest.approx(980 / 1010, abs=1e-4)


def test_one_setting_has_to_serve_all_scenarios() -> None:
    runs = [
        result("load-70", "headway", 1.0),
        result("load-70", "stock-512-priority", 1.0),
        result("load-70", "stock-384-priority", 0.9),
        result("tpot-15", "headway", 0.97),
        result("tpot-15", "stock-512-priority", 0.3),
        result("tpot-15", "stock-384-priority", 0.9),
        result("tpot-100", "headway", 1.0, 1200),
        result("tpot-100", "stock-512-priority", 1.0),
        result("tpot-100", "stock-384-priority", 1.0, 1000),
        result("tpot-100", "stock-2048-priority", 1.0, 1500),
    ]
    assert single_static(cells(runs)) == "stock-384-priority"
    # 10 points, then 7 points and no more tokens, then 20 % more tokens.
    assert figures(*runs)["share_ahead_of_single_static"] == pytest.approx(2 / 3, abs=1e-3)


def test_without_a_setting_in_every_scenario_there_is_no_single_one() -> None:
    found = figures(
        result("load-70", "headway", 1.0),
        result("load-70", "stock-512-priority", 1.0),
        result("tpot-15", "headway", 1.0),
        result("tpot-15", "stock-384-priority", 1.0),
    )
    assert found["share_ahead_of_single_static"] is None


def test_more_tokens_at_a_lower_attainment_are_not_ahead() -> None:
    found = figures(
        result("load-70", "headway", 0.8, 2000), result("load-70", "stock-512-priority", 1.0)
    )
    assert found["share_ahead_of_single_static"] == 0.0


def test_goodput_is_the_highest_load_that_is_borne() -> None:
    runs = [
        result("load-50", "headway", 1.0),
        result("load-70", "headway", 0.95),
        result("load-90", "headway", 0.94),
        result("load-10", "static-64", 0.96),
        result("load-50", "static-64", 0.5),
    ]
    found = figures(*runs)
    assert found["goodput_of_bound"] == 0.7
    assert found["static_goodput_ratio"] == 7.0
    assert found["static_goodput_ratio_is_lower_bound"] is False


def test_a_backlog_that_grows_is_not_borne() -> None:
    found = figures(
        result("load-50", "headway", 1.0), result("load-70", "headway", 1.0, backlog_grows=True)
    )
    assert found["goodput_of_bound"] == 0.5


def test_a_goodput_of_static_batching_that_was_never_reached_gives_a_bound() -> None:
    found = figures(
        result("load-70", "headway", 1.0),
        result("load-30", "static-32", 0.1),
        result("load-70", "static-64", 0.1),
    )
    assert found["static_goodput_ratio"] == pytest.approx(0.7 / 0.3, abs=1e-3)
    assert found["static_goodput_ratio_is_lower_bound"] is True


def test_static_batching_counts_at_its_best_size() -> None:
    found = figures(
        result("burst-140", "headway", 0.9, 2000, latency_s=3.0),
        result("burst-140", "static-64", 0.1, 800, latency_s=10.0),
        result("burst-140", "static-256", 0.1, 1000, latency_s=12.0),
    )
    assert found["static_throughput_ratio"] == 2.0
    assert found["static_latency_ratio"] == 0.3
    assert found["scenarios"] == 0, "static batching is no stock setting"


def test_offline_is_held_against_stock_and_is_no_scenario_of_objectives() -> None:
    found = figures(
        result("offline", "headway", 1.0, 995), result("offline", "stock-8192-fcfs", 1.0, 1000)
    )
    assert found["offline_throughput_ratio"] == 0.995
    assert found["scenarios"] == 0


def test_arms_are_compared_with_the_seeds_they_have_in_common() -> None:
    found = figures(
        result("load-70", "headway", 1.0, seed=1),
        result("load-70", "headway", 0.5, seed=2),
        result("load-70", "stock-512-priority", 1.0, seed=1),
    )
    assert found["worst_attainment_gap_vs_tuned"] == 0.0


def test_of_several_models_the_worst_counts_and_controls_do_not() -> None:
    found = figures(
        result("offline", "headway", 1.0, 990),
        result("offline", "headway", 1.0, 1, is_control=True),
        result("offline", "stock-8192-fcfs", 1.0, 1000),
        result("offline", "headway", 1.0, 970, shape="qwen3-1.7b"),
        result("offline", "stock-8192-fcfs", 1.0, 1000, shape="qwen3-1.7b"),
    )
    assert found["offline_throughput_ratio"] == 0.97


def test_a_report_is_written_whatever_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leases = [tmp_path / "lease-1", tmp_path / "lease-2"]
    runs = [
        result("load-70", "headway", 0.97, 980),
        result("load-70", "headway", 0.96, 970, is_control=True),
        result("load-70", "stock-512-priority", 0.99),
        result("load-70", "stock-384-fcfs", 0.5, engine_started_s=200),
        result("offline", "stock-8192-fcfs", 1.0),
    ]
    runs[0]["summary"]["endings"]["refused"] = 3
    runs[0]["plans"] = {"failed": 2, "late": 5, "breaker": 0, "plugin_share": 0.0123}
    for index, each in enumerate(runs):
        results.write(leases[index % 2], each)
    target = tmp_path / "gpu.json"
    assert report.main([*map(str, leases), "--json", str(target)]) == 0
    written = json.loads(target.read_text())
    assert set(written) == KEYS
    assert written["static_goodput_ratio"] is None
    assert json.loads(capsys.readouterr().out) == written
    text = (tmp_path / "gpu.md").read_text()
    assert "vLLM 0.26.0; GPU NVIDIA H200" in text
    assert "Engine processes: 2;" in text
    assert "to be planned and were not: 7 in qwen3-8b.load-70.s1.headway" in text
    assert "| 1.23 |" in text
    assert "but for load-70 seed 1 (qwen3-8b)." in text
    assert "| qwen3-8b | load-70 | stock-512-priority | -2.0 | 0.980 |" in text
    assert "| qwen3-8b | load-70 | 1 | headway | -1.0 | -1.0 % |" in text
    assert "| **headway** | 1 | 97.0 |" in text
    assert "| 3 | 0 | 0 |" in text
