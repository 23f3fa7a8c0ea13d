"""The few figures, on results made by hand, and the command that measures them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway_runtime.bench import class_figures, results
from headway_runtime.bench import simulate as simulate_command
from headway_runtime.bench.class_figures import ABLATIONS, ARMS, DECLARING_ARMS, document_of
from headway_runtime.bench.classes.figures import class_figures as figures_of
from headway_runtime.bench.classes.report import TARGETS, report
from headway_runtime.bench.classes.scenarios import CLASS_SCENARIOS
from headway_runtime.bench.classes.table import Table


def result(scenario: str, arm: str, seed: int = 1, **sections: Any) -> dict[str, Any]:
    return {
        "scenario": scenario,
        "arm": arm,
        "seed": seed,
        "is_control": False,
        "shape": "simulated",
        "sharing": None,
        "programs": None,
        **sections,
    }


def overloaded(
    scenario: str, arm: str, kept: float, tokens: float, seed: int = 1, **fields: Any
) -> dict[str, Any]:
    admission = {
        "accepted_attainment": kept / 2,
        "refusal_ms": {"p99": 7.0},
        "shed": {"accepted_attainment": kept},
    }
    summary = {"window_tokens_per_s": tokens}
    return result(scenario, arm, seed, admission=admission, summary=summary, **fields)


def test_in_overload_the_worst_scenario_counts_and_seeds_are_averaged() -> None:
    found = figures_of(
        Table(
            [
                overloaded("overload-140", "headway", 0.99, 100),
                overloaded("overload-200", "headway", 0.94, 100, seed=1),
                overloaded("overload-200", "headway", 0.98, 100, seed=2),
            ]
        )
    )
    assert found["overload_accepted_attainment"] == 0.96
    assert found["overload_accepted_attainment_all_classes"] == 0.48
    assert found["overload_tokens_ratio"] is None


def test_tokens_are_held_against_the_stock_arm_that_keeps_most_objectives() -> None:
    found = figures_of(
        Table(
            [
                overloaded("overload-140", "headway", 1.0, 100),
                overloaded("overload-140", "stock-512-priority", 0.900, 90),
                overloaded("overload-140", "stock-queued-64", 0.897, 95),
                overloaded("overload-140", "stock-8192-fcfs", 0.1, 125),
                overloaded("overload-140", "niyama", 0.99, 200),
            ]
        )
    )
    # Of those that keep equally many, the one with most tokens.
    assert found["overload_tokens_ratio"] == round(100 / 95, 4)
    assert found["overload_tokens_ratio_vs_most"] == 0.8


def test_refusals_are_timed_over_http_alone() -> None:
    simulated = overloaded("overload-140", "headway", 1.0, 100)
    real = overloaded("overload-140", "headway", 1.0, 100, seed=2, shape="qwen3-8b")
    assert figures_of(Table([simulated]))["refusal_ms_p99"] is None
    assert figures_of(Table([simulated, real]))["refusal_ms_p99"] == 7.0


def test_what_was_run_on_a_real_engine_is_told_with_the_time_of_its_refusals() -> None:
    told = {"machine": "2 cores", "engine_version": "0.32.0", "gpu": None, "slower": 10.0}
    real = overloaded("overload-140", "headway", 1.0, 100, shape="tiny", **told)
    document = document_of([real], "the command")
    assert document["conditions"] == {
        "machine": ["2 cores"],
        "engine_version": ["0.32.0"],
        "shape": ["tiny"],
        "slower": ["10.0"],
    }
    assert document["scenarios"]["overload-140"]["headway"]["refusal_ms_p99"] == 7.0
    text = report(document)
    assert "- engine_version: 0.32.0" in text
    assert "takes no time" not in text
    simulated = document_of([overloaded("overload-140", "headway", 1.0, 100)], "the command")
    assert simulated["conditions"] == {}
    assert "refusal_ms_p99" not in simulated["scenarios"]["overload-140"]["headway"]
    assert "takes no time" in report(simulated)


def shared(
    scenario: str, jain: float, worst: float, light: float, beyond: int = 0
) -> dict[str, Any]:
    tenants = {f"light-{n}": {"attainment": light} for n in (1, 2, 3)}
    sharing = {
        "jain_index": jain,
        "jain_index_worst": worst,
        "beyond_bound": beyond,
        "tenants": tenants,
    }
    return result(scenario, "headway", sharing=sharing)


def test_shares_and_the_cost_of_a_claim() -> None:
    found = figures_of(
        Table(
            [
                shared("tenants-equal", 0.99, 0.97, 0.5),
                shared("tenants-weighted", 0.97, 0.91, 0.5, beyond=2),
                shared("tenants-truth", 0.5, 0.5, 0.99),
                shared("tenants-claim", 0.4, 0.4, 0.96),
            ]
        )
    )
    assert (found["jain_index"], found["jain_index_worst"]) == (0.97, 0.91)
    assert found["requests_beyond_bound"] == 2
    assert found["claim_cost_attainment"] == 3.0


def programs(
    scenario: str, arm: str, p50: float, p95: float, honest: float = 1.0
) -> dict[str, Any]:
    seconds = {"p50": p50, "p95": p95}
    of_honest = {"completion_s": {"p50": honest, "p95": honest}}
    return result(
        scenario,
        arm,
        programs={"completion_s": seconds, "tenants": {"honest": of_honest}},
        summary={},
    )


CHAIN = [
    programs("programs-chain", "headway", 5.0, 20.0, honest=5.0),
    programs("programs-chain", "stock-512-fcfs", 20.0, 60.0),
    programs("programs-chain", "stock-8192-fcfs", 10.0, 50.0),
    programs("programs-chain", "plas", 6.0, 90.0),
    programs("programs-chain", "spf", 4.0, 80.0),
    programs("programs-chain", "headway-no-order", 10.0, 40.0),
    programs("programs-chain-undeclared", "headway", 8.0, 25.0),
    programs("programs-chain-wrong", "headway", 5.0, 20.0, honest=5.5),
    programs("programs-chain-malicious", "headway", 5.0, 20.0, honest=5.0),
]


def test_programs_are_held_against_fcfs_and_against_whatever_is_best() -> None:
    found = figures_of(Table(CHAIN))
    assert found["program_p50_ratio_vs_fcfs"] == 2.0
    assert found["program_p95_ratio_vs_fcfs"] == 2.5
    assert found["program_p50_ratio_vs_best_other"] == 0.8
    assert found["program_p95_ratio_vs_best_other"] == 2.5
    # Arms that look at no declaration are not run again.
    assert found["program_undeclared_p50_ratio_vs_fcfs"] == 1.25


def test_a_lie_costs_what_the_honest_tenant_takes_longer() -> None:
    found = figures_of(Table(CHAIN))
    assert found["wrong_cost_p50"] == 1.1
    assert found["malicious_cost_p95"] == 1.0


def test_of_several_scenarios_the_worst_one_counts() -> None:
    tree = [
        programs("programs-tree", "headway", 9.0, 20.0),
        programs("programs-tree", "stock-512-fcfs", 9.0, 60.0),
    ]
    assert figures_of(Table([*CHAIN, *tree]))["program_p50_ratio_vs_fcfs"] == 1.0


def test_arms_are_compared_over_the_seeds_that_both_have() -> None:
    more = {**programs("programs-chain", "headway", 500.0, 900.0), "seed": 2}
    assert figures_of(Table([*CHAIN, more]))["program_p50_ratio_vs_fcfs"] == 2.0


def test_runs_that_repeat_others_do_not_count() -> None:
    again = {**programs("programs-chain", "headway", 500.0, 900.0), "is_control": True}
    assert figures_of(Table([*CHAIN, again]))["program_p50_ratio_vs_fcfs"] == 2.0


def test_the_document_has_parts_that_were_off_and_every_scenario() -> None:
    document = document_of(CHAIN, "the command")
    assert document["program_p50_ratio_vs_fcfs"] == 2.0
    assert document["ablations"]["headway-no-order"]["program_p50_ratio_vs_fcfs"] == 1.0
    assert document["scenarios"]["programs-chain"]["plas"]["completion_s_p95"] == 90.0
    assert (document["command"], document["runs"], document["seeds"]) == ("the command", 9, [1])
    text = report(document)
    assert "| headway-no-order | 1.000 |" in text
    assert "### programs-chain-malicious" in text
    assert set(TARGETS) <= set(document["figures"])


def test_every_scenario_has_arms_and_headway_is_one_of_them() -> None:
    for scenario in CLASS_SCENARIOS:
        assert "headway" in ARMS[scenario.family]
    assert "headway" in DECLARING_ARMS


def test_the_command_measures_and_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "classes.json"
    arguments = [
        *("--json", str(path), "--seeds", "1", "--duration-s", "1"),
        *("--scenarios", "overload-200", "tenants-equal", "programs-tree", "programs-tree-wrong"),
        *("--ablations", "headway-no-order"),
    ]
    assert class_figures.main(arguments) == 0
    document = json.loads(path.read_text())
    assert set(document["scenarios"]["overload-200"]) == {
        *ARMS["overload"],
        *ABLATIONS["overload"],
        "headway-no-order",
    }
    assert set(document["scenarios"]["programs-tree-wrong"]) == {
        *DECLARING_ARMS,
        "headway-no-order",
    }
    assert document["overload_accepted_attainment"] is not None
    assert document["refusal_ms_p99"] is None
    assert document["wrong_cost_p50"] is not None
    assert document["scenarios"]["tenants-equal"]["vtc"]["tenants"]["heavy"]["service_share"] > 0
    assert document["is_simulated"]
    assert "--seeds 1" in document["command"]
    assert json.loads(capsys.readouterr().out)["overload_tokens_ratio"]
    assert "## Every scenario" in path.with_suffix(".md").read_text()


def test_the_command_takes_results_that_were_made_before(tmp_path: Path) -> None:
    out = tmp_path / "out"
    made = [
        *("--out", str(out), "--scenarios", "overload-200", "programs-chain"),
        *("--arms", "headway", "stock-512-fcfs", "--duration-s", "3"),
    ]
    assert simulate_command.main(made) == 0
    assert len(results.read([out])) == 4
    path = tmp_path / "classes.json"
    assert class_figures.main(["--json", str(path), "--results", str(out)]) == 0
    document = json.loads(path.read_text())
    assert set(document["scenarios"]) == {"overload-200", "programs-chain"}
    assert document["program_p50_ratio_vs_fcfs"] > 0
