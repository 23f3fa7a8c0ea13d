"""The command line of :mod:`headway_runtime.bench.run`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway_runtime.bench import results
from headway_runtime.bench.arms import Arm, parse, parse_all
from headway_runtime.bench.catalogue import named
from headway_runtime.bench.machine import machine
from headway_runtime.bench.runs import Group, Run
from headway_runtime.bench.scaled import Scale, scaled
from headway_runtime.bench.scenarios import Offer, Scenario, measured_capacities
from headway_runtime.bench.workload import Workload

_OVERHEAD_S = 4.0
_SLOWEST_SHARE = 0.85


@dataclass(frozen=True)
class Settings:
    """What the command line says.

    Attributes:
        groups: runs that are wanted.
        out: directory of results.
        until_s: monotonic time after which nothing runs any more.
        capacity_tokens_per_s: by scenario or mix; ``""`` for all others.
        traces: directory of the public traces.
        duration_s: arrival window instead of the scenarios' own.
        drain_s: time after the arrival window at which open requests are given up.
        pack: archive of all results, kept up to date.
        keeps_steps: whether each run's step log is kept too.
        scale: what objectives and lengths are scaled by.
        command: the command line.
    """

    groups: list[Group]
    out: Path
    until_s: float
    capacity_tokens_per_s: dict[str, float]
    traces: Path | None
    duration_s: float | None
    drain_s: float
    pack: Path | None
    keeps_steps: bool
    scale: Scale
    command: str

    def capacity(self, scenario: Scenario) -> float:
        """Capacity for this scenario, see :mod:`headway_runtime.bench.scenarios`."""
        known = self.capacity_tokens_per_s
        return known.get(scenario.name, known.get(scenario.mix, known[""]))

    def workload(self, run: Run) -> Workload:
        """The requests of a run; equal for all arms.

        Raises:
            ValueError: the scenario cannot be scaled, or its trace is not there.
            OSError: its trace cannot be read.
        """
        return self.offered(run.scenario, run.seed, self.duration_s)

    def offered(self, scenario: Scenario, seed: int, duration_s: float | None) -> Workload:
        """The requests of a scenario, see :meth:`workload`."""
        # As many more requests as each of them is to be shorter.
        capacity = self.capacity(scenario) * self.scale.shorter
        offer = Offer(seed, capacity, duration_s, self.traces)
        return scaled(scenario.workload(offer), self.scale)

    def expected_s(self, run: Run, workload: Workload) -> float:
        """Time a run takes, all its work done."""
        work_s = workload.tokens / (_SLOWEST_SHARE * self.capacity(run.scenario))
        return max(workload.duration_s, work_s) + _OVERHEAD_S

    def told(self, scenario: Scenario) -> dict[str, Any]:
        """What a run's result tells of how and where it was made."""
        return {
            "capacity_tokens_per_s": self.capacity(scenario),
            "slower": self.scale.slower,
            "shorter": self.scale.shorter,
            "machine": machine(),
            "command": self.command,
        }

    @property
    def left_s(self) -> float:
        """Time left."""
        return self.until_s - time.monotonic()


def read_settings(options: argparse.Namespace, begun_s: float) -> Settings:
    """Settings from the command line; the time left counts from ``begun_s``.

    Raises:
        ValueError: a scenario or an arm is unknown, the plan is none, or capacities are those of
            several models.
        OSError, tarfile.TarError: the plan or results with capacities cannot be read.
    """
    groups = [
        Group(
            scenarios=tuple(named(each["scenarios"])),
            arms=tuple(parse_all(each["arms"])),
            seeds=tuple(each["seeds"]),
            control=_arm(each.get("control")),
        )
        for each in _plan(options)
    ]
    return Settings(
        groups=groups,
        out=options.out,
        until_s=begun_s + options.budget_s,
        capacity_tokens_per_s={
            "": options.capacity_tokens_per_s,
            **measured_capacities(results.read(options.capacities)),
            **dict(options.capacity),
        },
        traces=options.traces,
        duration_s=options.duration_s,
        drain_s=options.drain_s,
        pack=options.pack,
        keeps_steps=options.keep_steps,
        scale=Scale(options.slower, options.shorter),
        command=" ".join(("python -m", options.program, *sys.argv[1:])),
    )


def _plan(options: argparse.Namespace) -> list[dict[str, Any]]:
    if options.plan is not None:
        plan: list[dict[str, Any]] = json.loads(options.plan.read_text(encoding="utf-8"))
        return plan
    return [
        {
            "scenarios": options.scenarios,
            "arms": options.arms,
            "seeds": options.seeds,
            "control": options.control,
        }
    ]


def _arm(name: str | None) -> Arm | None:
    return parse(name) if name else None


def parser(program: str, description: str | None) -> argparse.ArgumentParser:
    """What may be said about runs."""
    parser = argparse.ArgumentParser(
        prog=f"headway_runtime.bench.{program}", description=description
    )
    add = parser.add_argument
    parser.set_defaults(program=parser.prog)
    add("--out", type=Path, required=True, help="directory of results, one file a run")
    add("--plan", type=Path, help="JSON list of {scenarios, arms, seeds, control}, instead of:")
    add("--scenarios", nargs="+", default=["load-70"], help="names, see catalogue.py")
    add("--arms", nargs="+", default=["headway", "stock-512-priority"], help="names, see arms.py")
    add("--seeds", nargs="+", type=int, default=[1])
    add("--control", help="an arm that is run a second time, for the noise")
    add("--budget-s", type=float, default=540, help="stop cleanly after so long")
    add("--capacity-tokens-per-s", type=float, default=29_000, help="see scenarios.py")
    add("--capacity", nargs="+", type=_capacity, default=[], metavar="SCENARIO=TOKENS_PER_S")
    add(
        "--capacities",
        type=Path,
        nargs="+",
        default=[],
        help="results of scenarios capacity-*, whose capacities are taken",
    )
    add("--slower", type=float, default=1, help="objectives are so many times as long")
    add(
        "--shorter", type=float, default=1, help="so many times more requests, each so much shorter"
    )
    add("--traces", type=Path, help="directory of the public traces")
    add("--duration-s", type=float, help="arrival window instead of the scenarios' own")
    add("--drain-s", type=float, default=60, help="give requests up so long after the window")
    add("--done", type=Path, nargs="+", default=[], help="results or lists of runs not to repeat")
    add("--keep-steps", action="store_true", help="keep every run's step log as .npz")
    add("--pack", type=Path, help="archive (.tar.gz) of all results in --out")
    return parser


def engine_parser(program: str, description: str | None) -> argparse.ArgumentParser:
    """What may be said about runs on an engine."""
    of_engine = parser(program, description)
    add = of_engine.add_argument
    add("--state", type=Path, required=True, help="the server's directory")
    add("--warm-up-s", type=float, default=4, help="load before measuring, twice")
    add("--clients", type=int, default=4, help="client processes")
    return of_engine


def _capacity(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    named([name])
    return name, float(value)
