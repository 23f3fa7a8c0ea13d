"""The few figures that promises about classes, tenants and programs are held against. Pure.

None stands for what was not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headway_runtime.bench.arms import HEADWAY, Kind, parse
from headway_runtime.bench.classes.declarations import Declared
from headway_runtime.bench.classes.scenarios import HONEST, LIGHT, base_of
from headway_runtime.bench.classes.table import Table, at
from headway_runtime.bench.simulated import SIMULATED

OVERLOADS = ("overload-140", "overload-200")
SHARED = ("tenants-equal", "tenants-weighted")
TRUTH, CLAIM = "tenants-truth", "tenants-claim"
PROGRAMS = ("programs-chain", "programs-tree", "programs-mixed")

SAME_ATTAINMENT = 0.005
"""Attainments that differ by less are taken for equal."""

_Worst = Callable[[list[float]], float]


def class_figures(table: Table, arm: str = HEADWAY.name) -> dict[str, Any]:
    """The figures of an arm, by name; of several scenarios the worst one counts.

    - ``overload_accepted_attainment``: share of accepted requests of the classes that are shed
      inside their objectives; ``..._all_classes`` of all accepted ones.
    - ``refusal_ms_p99``: time to a refusal, measured over HTTP alone.
    - ``overload_tokens_ratio``: tokens/s over those of the stock arm that keeps most objectives;
      ``..._vs_most`` over those of the stock arm with most tokens/s.
    - ``jain_index``, ``jain_index_worst``, ``requests_beyond_bound``: see
      :func:`sharing.sharing_figures`.
    - ``claim_cost_attainment``: by how much the light tenants' attainment falls when the heavy one
      calls everything interactive, in percentage points.
    - ``program_p50_ratio_vs_fcfs`` and ``_p95_``: completion of programs under stock FCFS, at the
      budget that is better, over ours; ``..._vs_best_other`` over the best of all other arms;
      ``program_undeclared_...`` with nothing declared but ids.
    - ``wrong_cost_p50``, ``malicious_cost_p50`` and ``_p95``: completion of the honest tenant's
      programs while the other one declares wrongly, over what it is while that declares truly;
      1 is no cost.
    - ``mixed_ttft_attainment``: chat beside programs inside its objectives.
    """
    return {
        **_overload(table, arm),
        **_sharing(table, arm),
        **_programs(table, arm),
        **_lies(table, arm),
        "mixed_ttft_attainment": _rounded(
            table.mean("programs-mixed", arm, "summary", "classes", "interactive", "attainment")
        ),
    }


def _overload(table: Table, arm: str) -> dict[str, Any]:
    kept = [table.mean(s, arm, "admission", "shed", "accepted_attainment") for s in OVERLOADS]
    of_all = [table.mean(s, arm, "admission", "accepted_attainment") for s in OVERLOADS]
    refusals = [
        at(run, ("admission", "refusal_ms", "p99"))
        for scenario in OVERLOADS
        for run in table.runs(scenario, arm)
        if run["shape"] != SIMULATED
    ]
    return {
        "overload_accepted_attainment": _worst(kept, min),
        "overload_accepted_attainment_all_classes": _worst(of_all, min),
        "refusal_ms_p99": _worst(refusals, max),
        "overload_tokens_ratio": _worst((_vs_tuned(table, s, arm) for s in OVERLOADS), min),
        "overload_tokens_ratio_vs_most": _worst((_vs_most(table, s, arm) for s in OVERLOADS), min),
    }


def _vs_tuned(table: Table, scenario: str, arm: str) -> float | None:
    def attained(other: str) -> float:
        return table.mean(scenario, other, "admission", "shed", "accepted_attainment") or 0.0

    stock = _stock(table, scenario)
    best = max(map(attained, stock), default=0.0)
    equal = [each for each in stock if attained(each) >= best - SAME_ATTAINMENT]
    return _worst((_tokens_ratio(table, scenario, arm, each) for each in equal), min)


def _vs_most(table: Table, scenario: str, arm: str) -> float | None:
    stock = _stock(table, scenario)
    return _worst((_tokens_ratio(table, scenario, arm, each) for each in stock), min)


def _tokens_ratio(table: Table, scenario: str, arm: str, other: str) -> float | None:
    return table.ratio((scenario, arm), (scenario, other), "summary", "window_tokens_per_s")


def _stock(table: Table, scenario: str) -> list[str]:
    return [each for each in table.arms(scenario) if parse(each).kind is Kind.STOCK]


def _sharing(table: Table, arm: str) -> dict[str, Any]:
    def light(scenario: str) -> float | None:
        means = [
            table.mean(scenario, arm, "sharing", "tenants", name, "attainment") for name in LIGHT
        ]
        known = [each for each in means if each is not None]
        return sum(known) / len(known) if known else None

    truth, claim = light(TRUTH), light(CLAIM)
    beyond = [table.mean(s, arm, "sharing", "beyond_bound") for s in (*SHARED, TRUTH, CLAIM)]
    return {
        "jain_index": _worst((table.mean(s, arm, "sharing", "jain_index") for s in SHARED), min),
        "jain_index_worst": _worst(
            (
                at(run, ("sharing", "jain_index_worst"))
                for scenario in SHARED
                for run in table.runs(scenario, arm)
            ),
            min,
        ),
        "requests_beyond_bound": _worst(beyond, max),
        "light_attainment_truth": _rounded(truth),
        "light_attainment_claim": _rounded(claim),
        "claim_cost_attainment": None
        if truth is None or claim is None
        else round(100 * (truth - claim), 2),
    }


def _programs(table: Table, arm: str) -> dict[str, Any]:
    undeclared = [f"{base}-{Declared.UNDECLARED.value}" for base in PROGRAMS]
    figures: dict[str, Any] = {}
    for name in ("p50", "p95"):
        path = ("programs", "completion_s", name)
        figures[f"program_{name}_ratio_vs_fcfs"] = _worst(
            (_vs_best(table, each, arm, path, is_fcfs) for each in PROGRAMS), min
        )
        figures[f"program_{name}_ratio_vs_best_other"] = _worst(
            (_vs_best(table, each, arm, path, is_other) for each in PROGRAMS), min
        )
        figures[f"program_undeclared_{name}_ratio_vs_fcfs"] = _worst(
            (_vs_best(table, each, arm, path, is_fcfs) for each in undeclared), min
        )
    return figures


def is_fcfs(arm: str) -> bool:
    """Whether it is stock vLLM in order of arrival."""
    return arm.startswith("stock-") and arm.endswith("-fcfs")


def is_other(arm: str) -> bool:
    """Whether it is neither ours nor ours with a part off."""
    return parse(arm).kind not in (Kind.HEADWAY, Kind.ABLATION)


def _vs_best(
    table: Table, scenario: str, arm: str, path: Sequence[str], counts: Callable[[str], bool]
) -> float | None:
    """The least of other arms' figures over ours.

    Arms that look at no declaration were not run again where only those differ.
    """
    base, _ = base_of(scenario)
    ratios = [
        table.ratio((base, other), (scenario, arm), *path)
        for other in table.arms(base)
        if counts(other)
    ]
    return _worst(ratios, min)


def _lies(table: Table, arm: str) -> dict[str, Any]:
    return {
        f"{variant.value}_cost_{name}": _worst(
            (
                table.ratio(
                    (f"{base}-{variant.value}", arm),
                    (base, arm),
                    *("programs", "tenants", HONEST, "completion_s", name),
                )
                for base in PROGRAMS
            ),
            max,
        )
        for variant in (Declared.WRONGLY, Declared.MALICIOUSLY)
        for name in ("p50", "p95")
    }


def _worst(values: Iterable[float | None], worst: _Worst) -> float | None:
    known = [each for each in values if each is not None]
    return round(worst(known), 4) if known else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
