"""Measures classes, tenants and programs into ``classes.json`` and a Markdown report beside it.

``python -m headway_runtime.bench.class_figures --json docs/results/classes.json`` runs everything
on a simulated engine; with ``--results`` figures are those of runs that were made before, as by
:mod:`headway_runtime.bench.run` on a real one. What is simulated tells ways to schedule apart, and
is never a claim about a GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headway_runtime.bench import results
from headway_runtime.bench.arms import HEADWAY, Arm, Kind, parse, parse_all
from headway_runtime.bench.classes.declarations import Declared
from headway_runtime.bench.classes.details import details
from headway_runtime.bench.classes.figures import class_figures
from headway_runtime.bench.classes.report import report
from headway_runtime.bench.classes.scenarios import (
    CLASS_SCENARIOS,
    OVERLOAD,
    PROGRAMS,
    TENANTS,
    base_of,
)
from headway_runtime.bench.classes.table import Table
from headway_runtime.bench.measure import line, result_of
from headway_runtime.bench.results import Result
from headway_runtime.bench.runs import Run
from headway_runtime.bench.scenarios import Offer, Scenario
from headway_runtime.bench.simulated import SIMULATED, SimulatedGpu, simulate

CAPACITY_TOKENS_PER_S = 29_000.0
"""Of the simulated engine, see :mod:`headway_runtime.bench.scenarios`."""

ARMS: Mapping[str, tuple[str, ...]] = {
    OVERLOAD: (
        *("headway", "stock-8192-fcfs", "stock-512-fcfs", "stock-512-priority"),
        *("stock-queued-64", "stock-queued-128", "stock-queued-128-priority", "niyama", "spf"),
    ),
    TENANTS: ("headway", "stock-512-fcfs", "stock-512-priority", "vtc"),
    PROGRAMS: (
        *("headway", "stock-8192-fcfs", "stock-512-fcfs", "stock-512-priority"),
        *("vtc", "plas", "atlas-1024", "spf"),
    ),
}
"""Arms of each family of scenarios."""

DECLARING_ARMS: tuple[str, ...] = ("headway", "plas")
"""Arms for variants of what is declared; the others do not look at it."""

ABLATIONS: Mapping[str, tuple[str, ...]] = {
    OVERLOAD: ("headway-no-door",),
    TENANTS: ("headway-no-tenants",),
    PROGRAMS: ("headway-no-programs", "headway-no-tenants"),
}
"""What is measured with a part off."""

DRAIN_S = {OVERLOAD: 60.0, TENANTS: 15.0, PROGRAMS: 120.0}
"""Time after the arrival window at which open requests are given up."""


def main(arguments: list[str]) -> int:
    """Command line; the process's exit code."""
    options = _parser().parse_args(arguments)
    found = results.read(options.results) if options.results else list(_simulated(options))
    document = document_of(found, _command(arguments))
    text = json.dumps(document, indent=2) + "\n"
    options.json.write_text(text, encoding="utf-8")
    options.json.with_suffix(".md").write_text(report(document), encoding="utf-8")
    print(json.dumps({name: document[name] for name in document["figures"]}, indent=2))  # noqa: T201 - a command-line program
    return 0


def document_of(found: Sequence[Result], command: str) -> dict[str, Any]:
    """What ``classes.json`` holds.

    Args:
        found: results of runs.
        command: how they were made.
    """
    table = Table(found)
    figures = class_figures(table)
    return {
        **figures,
        "figures": list(figures),
        "ablations": {
            arm: class_figures(table, arm)
            for arm in sorted({each["arm"] for each in found})
            if parse(arm).kind is Kind.ABLATION
        },
        "command": command,
        "conditions": conditions_of(found),
        "is_simulated": all(each["shape"] == SIMULATED for each in found),
        "runs": len(found),
        "seeds": sorted({int(each["seed"]) for each in found}),
        "scenarios": details(table),
    }


_CONDITIONS = (
    *("machine", "engine_version", "gpu", "shape", "async_scheduling"),
    *("capacity_tokens_per_s", "slower", "shorter", "duration_s", "command"),
)


def conditions_of(found: Sequence[Result]) -> dict[str, list[str]]:
    """What runs on real engines were made on and how: by name, every value that they have."""
    real = [each for each in found if each["shape"] != SIMULATED]
    return {
        name: sorted(values)
        for name in _CONDITIONS
        if (values := {str(each[name]) for each in real if each.get(name) is not None})
    }


def _simulated(options: argparse.Namespace) -> Iterator[Result]:
    wanted = [
        each for each in CLASS_SCENARIOS if not options.scenarios or each.name in options.scenarios
    ]
    for seed in options.seeds:
        for scenario in wanted:
            for arm in _arms(scenario, options.arms, options.ablations):
                yield _run(Run(SIMULATED, scenario, seed, arm), options.duration_s)


def _arms(scenario: Scenario, named: Sequence[str], ablations: Sequence[str]) -> list[Arm]:
    """Arms of a scenario: by name or its family's; ablations beside them."""
    if named:
        return parse_all(named)
    _, variant = base_of(scenario.name)
    usual = (*ARMS[scenario.family], *ABLATIONS[scenario.family])
    if variant is not Declared.TRULY:
        usual = DECLARING_ARMS
    return parse_all([*usual, *ablations])


def _run(run: Run, duration_s: float | None) -> Result:
    workload = run.scenario.workload(Offer(run.seed, CAPACITY_TOKENS_PER_S, duration_s))
    give_up_s = workload.duration_s + DRAIN_S[run.scenario.family]
    loaded = simulate(SimulatedGpu(), run.arm, workload, run.seed, give_up_s)
    result = result_of(run, workload, loaded)
    print(line(result, workload.classes), file=sys.stderr, flush=True)  # noqa: T201 - a command-line program
    return result


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headway_runtime.bench.class_figures", description=__doc__
    )
    add = parser.add_argument
    add("--json", type=Path, required=True, help="the report lies beside it")
    add("--results", type=Path, nargs="+", help="folders, archives or files, instead of running")
    add("--scenarios", nargs="+", choices=[each.name for each in CLASS_SCENARIOS], metavar="NAME")
    add("--arms", nargs="+", default=[], help="instead of those of each family of scenarios")
    add("--ablations", nargs="+", default=[], help=f"such as {HEADWAY.name}-no-order, beside them")
    add("--seeds", nargs="+", type=int, default=[1, 2, 3])
    add("--duration-s", type=float, help="arrival window instead of the scenarios' own")
    return parser


def _command(arguments: Sequence[str]) -> str:
    return " ".join(("python -m headway_runtime.bench.class_figures", *arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
