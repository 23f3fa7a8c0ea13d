"""``make bench-autoscale``: the operator's decision on replicas, against HPAs and a clairvoyant."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.autoscale.arms import Foreseen, arms, foresee
from tests.autoscale.cases import CASES, Case
from tests.autoscale.figures import Summary, as_one_setting, compared, summary, worst
from tests.autoscale.report import page
from tests.autoscale.scalers import TICK_SECONDS
from tests.autoscale.simulation import SERIES_SECONDS, Outcome, simulate
from tests.scale import results


@dataclass(frozen=True)
class Run:
    """One simulation.

    Attributes:
        case: index of its case.
        arm: its name.
        seed: of all chance.
        traces: directory of the public traces.
    """

    case: int
    arm: str
    seed: int
    traces: Path

    def make(self) -> Outcome:
        """Run it. The same run has the same outcome."""
        case = CASES[self.case]
        arrivals = case.arrivals(self.traces, self.seed)
        foreseen = _foreseen(case, self.traces)
        scaler = arms(case, foreseen)[self.arm]()
        return simulate(case, arrivals, scaler, foreseen.pods[0], self.seed)


def main() -> int:
    """Run everything and write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="results file to write, and its page beside it")
    parser.add_argument("--traces", type=Path, required=True, help="directory of public traces")
    parser.add_argument("--seeds", type=int, default=2, help="runs of each (%(default)s)")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="%(default)s")
    arguments = parser.parse_args()
    found = _measured(arguments.traces, arguments.seeds, arguments.processes)
    write(arguments.file, arguments.traces, found, arguments.seeds)
    return 0


def write(
    file: Path, folder: Path, found: Mapping[int, Mapping[str, Sequence[Outcome]]], seeds: int
) -> None:
    """Write the results file and its page.

    Args:
        file: the results file.
        folder: of the public traces.
        found: outcomes by case and arm, one of each seed.
        seeds: how many there are.
    """
    summaries = [
        {name: summary(each) for name, each in found[number].items()}
        for number in range(len(CASES))
    ]
    traces = {
        case.name: _figures(case, folder, arms) for case, arms in zip(CASES, summaries, strict=True)
    }
    figures = {
        **worst(list(traces.values())),
        "seeds": seeds,
        "vs_one_hpa_for_all_traces": as_one_setting(summaries),
        "traces": traces,
    }
    command = f'make bench-autoscale TRACES=DIR BENCH="--seeds {seeds}"'
    with contextlib.redirect_stdout(io.StringIO()):
        results.write(file, command, {}, figures)
    file.with_suffix(".md").write_text(page(figures))
    print({name: value for name, value in figures.items() if name != "traces"})


def _measured(
    traces: Path, seeds: int, processes: int | None
) -> dict[int, dict[str, list[Outcome]]]:
    """All outcomes, by case and arm, in order of their seeds."""
    runs = [
        Run(number, arm, seed, traces)
        for number, case in enumerate(CASES)
        for arm in arms(case, _foreseen(case, traces))
        for seed in range(1, seeds + 1)
    ]
    begun_s = time.monotonic()
    outcomes: dict[Run, Outcome] = {}
    with ProcessPoolExecutor(processes) as pool:
        made = {pool.submit(run.make): run for run in runs}
        for each in as_completed(made):
            run, outcome = made[each], each.result()
            outcomes[run] = outcome
            print(
                f"{time.monotonic() - begun_s:4.0f} s  {len(outcomes)}/{len(runs)}  "
                f"{CASES[run.case].name}, {run.arm}, seed {run.seed}: "
                f"{100 * outcome.attainment:.2f} %, {outcome.gpu_hours:.2f} GPU-hours",
                flush=True,
            )
    by_case: dict[int, dict[str, list[Outcome]]] = {}
    for run in runs:
        by_case.setdefault(run.case, {}).setdefault(run.arm, []).append(outcomes[run])
    return by_case


def _foreseen(case: Case, traces: Path) -> Foreseen:
    # Seeds move arrivals by less than the precision of the trace: one plan is good for all.
    return foresee(case, case.arrivals(traces, seed=1))


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
