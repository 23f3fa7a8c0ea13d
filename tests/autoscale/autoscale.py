"""``make bench-autoscale``: the operator's decision on replicas, against HPAs and a clairvoyant."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.autoscale.arms import FIXED, MAIN, Foreseen, arms, foresee
from tests.autoscale.cases import HELD_OUT, SCALED, SEEN, Case
from tests.autoscale.figures import (
    Summary,
    as_one_setting,
    compared,
    fluid_error,
    summary,
    worst,
)
from tests.autoscale.report import page
from tests.autoscale.scalers import TICK_SECONDS
from tests.autoscale.simulation import SERIES_SECONDS, Outcome, simulate
from tests.scale import results

FLUID = (*SEEN, *SCALED)
"""Cases whose engines are queues. Those that are held out go step by step, and as queues too, to
see what that is off by."""

_BY_NAME = {case.name: case for case in (*HELD_OUT, *FLUID)}


_CASES = ("held_out", "held_out_as_queues", "seen", "scaled")


class Run(NamedTuple):
    """One simulation.

    Attributes:
        case: name of its case.
        arm: its name.
        seed: of all chance.
        is_fluid: engines are queues.
        traces: directory of the public traces.
    """

    case: str
    arm: str
    seed: int
    is_fluid: bool
    traces: Path

    def make(self) -> Outcome:
        """Run it. The same run has the same outcome."""
        case = replace(_BY_NAME[self.case], is_fluid=self.is_fluid)
        foreseen = _foreseen(case, self.traces)
        scaler = arms(case, foreseen)[self.arm]()
        arrivals = case.arrivals(self.traces, self.seed)
        return simulate(case, arrivals, scaler, foreseen.pods[0], self.seed)


Found = Mapping[tuple[str, bool], Mapping[str, Sequence[Outcome]]]
"""Outcomes, one of each seed, by case and whether its engines are queues, then by arm."""


def main() -> int:
    """Run everything and write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="results file to write, and its page beside it")
    parser.add_argument("--traces", type=Path, required=True, help="directory of public traces")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each (%(default)s)")
    parser.add_argument(
        "--stepwise",
        nargs="*",
        choices=[case.name for case in HELD_OUT],
        default=[case.name for case in HELD_OUT],
        help="cases to simulate step by step as well, of those held out (all)",
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="%(default)s")
    arguments = parser.parse_args()
    begun_s = time.monotonic()
    runs = list(planned(arguments.traces, arguments.seeds, arguments.stepwise))
    found = by_case(runs, dict(_made(runs, arguments.processes)))
    took = {"minutes": round((time.monotonic() - begun_s) / 60, 1)}
    took["processes"] = arguments.processes
    write(arguments.file, arguments.traces, found, arguments.seeds, took)
    return 0


def write(file: Path, folder: Path, found: Found, seeds: int, took: Mapping[str, Any]) -> None:
    """Write the results file and its page.

    Args:
        file: the results file.
        folder: of the public traces.
        found: all outcomes.
        seeds: how many each arm has.
        took: how long that was, and with how many processes.
    """
    in_steps = [case for case in HELD_OUT if (case.name, False) in found]
    stepwise = {case.name: _summaries(found[case.name, False]) for case in in_steps}
    fluid = {case.name: _summaries(found[case.name, True]) for case in (*HELD_OUT, *FLUID)}
    held_out = _cases(in_steps, folder, stepwise)
    as_queues = _cases(HELD_OUT, folder, fluid)
    seen = _cases(SEEN, folder, fluid)
    figures = {
        **worst(list(held_out.values())),
        "worst_as_queues": worst(list(as_queues.values())),
        "worst_of_seen": worst(list(seen.values())),
        "fluid_error": fluid_error(stepwise, fluid),
        "most_replicas": max(max(arm.pods) for case in SCALED for arm in fluid[case.name].values()),
        "seeds": seeds,
        "took": took,
        "vs_one_hpa_for_all_traces": as_one_setting([fluid[case.name] for case in HELD_OUT]),
        "held_out": held_out,
        "held_out_as_queues": as_queues,
        "seen": seen,
        "scaled": _cases(SCALED, folder, fluid),
    }
    chosen = f" --stepwise {' '.join(stepwise)}" if len(stepwise) < len(HELD_OUT) else ""
    command = f'make bench-autoscale TRACES=DIR BENCH="--seeds {seeds}{chosen}"'
    with contextlib.redirect_stdout(io.StringIO()):
        results.write(file, command, {}, figures)
    file.with_suffix(".md").write_text(page(figures))
    print({name: value for name, value in figures.items() if name not in _CASES})


def planned(traces: Path, seeds: int, stepwise: Sequence[str]) -> Iterator[Run]:
    """All runs, the cheap ones first; step by step, and with very many pods, some arms."""
    cases = [(case, True) for case in (*HELD_OUT, *FLUID)]
    cases += [(case, False) for case in HELD_OUT if case.name in stepwise]
    for case, is_fluid in cases:
        for arm in arms(case, _foreseen(case, traces)):
            is_main = arm in MAIN or arm.startswith(FIXED)
            if is_main or (is_fluid and case not in SCALED):
                for seed in range(1, seeds + 1):
                    yield Run(case.name, arm, seed, is_fluid, traces)


def by_case(runs: Iterable[Run], outcomes: Mapping[Run, Outcome]) -> Found:
    """Outcomes where they are looked for, in order of their seeds."""
    found: dict[tuple[str, bool], dict[str, list[Outcome]]] = {}
    for run in runs:
        arms_of = found.setdefault((run.case, run.is_fluid), {})
        arms_of.setdefault(run.arm, []).append(outcomes[run])
    return found


def _made(runs: Sequence[Run], processes: int | None) -> Iterator[tuple[Run, Outcome]]:
    begun_s = time.monotonic()
    for number, (run, outcome) in enumerate(_outcomes(runs, processes), start=1):
        print(
            f"{time.monotonic() - begun_s:4.0f} s  {number}/{len(runs)}  "
            f"{run.case}{' as a queue' if run.is_fluid else ''}, {run.arm}, seed {run.seed}: "
            f"{100 * outcome.attainment:.2f} %, {outcome.gpu_hours:.2f} GPU-hours",
            flush=True,
        )
        yield run, outcome


def _outcomes(runs: Sequence[Run], processes: int | None) -> Iterator[tuple[Run, Outcome]]:
    if processes == 1:
        yield from ((run, run.make()) for run in runs)
        return
    with ProcessPoolExecutor(processes) as pool:
        made = {pool.submit(run.make): run for run in runs}
        for each in as_completed(made):
            yield made[each], each.result()


def _summaries(found: Mapping[str, Sequence[Outcome]]) -> dict[str, Summary]:
    return {name: summary(each) for name, each in found.items()}


@cache
def _foreseen(case: Case, traces: Path) -> Foreseen:
    # Seeds move arrivals by less than the precision of the trace: one plan is good for all.
    return foresee(case, case.arrivals(traces, seed=1))


def _cases(
    cases: Iterable[Case], folder: Path, found: Mapping[str, Mapping[str, Summary]]
) -> dict[str, dict[str, Any]]:
    return {case.name: _figures(case, folder, found[case.name]) for case in cases}


def _figures(case: Case, folder: Path, arms: Mapping[str, Summary]) -> dict[str, Any]:
    foreseen = _foreseen(case, folder)
    return {
        "about": {
            "requests": len(case.arrivals(folder, seed=1)),
            "minutes": case.minutes,
            "slower": case.slower,
            "ttft_ms": case.ttft_ms,
            "tpot_ms": case.tpot_ms,
        },
        **compared(arms),
        "needed_by_minute": foreseen.needed[:: int(SERIES_SECONDS / TICK_SECONDS)],
        "arms": {name: each.as_figures() for name, each in arms.items()},
    }


if __name__ == "__main__":
    sys.exit(main())
