"""Compares ways to schedule on simulated engines and prints a table.

The figures are those of a model of an engine: good to find what is wrong with a way to schedule,
and to choose what to measure, never a claim about a GPU.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from headway_runtime.executors.simulated.arms import ARMS, Arm
from headway_runtime.executors.simulated.engine import SimulatedEngine
from headway_runtime.executors.simulated.kv_blocks import KvBlocks
from headway_runtime.executors.simulated.results import Figures, Results
from headway_runtime.executors.simulated.step_log import write
from headway_runtime.executors.simulated.step_time import GpuStepTime
from headway_runtime.executors.simulated.workload import Workload
from headway_runtime.policy import Policy, Scope, Stamp
from headway_runtime.scheduling.view import Limits

LONGEST_RUN_S = 600.0
"""A simulation that has not come to its end by this time of its own is stopped."""

KV_BLOCKS = 47_000
"""Of 16 tokens, beside a model of 8 billion parameters in the memory of one H200."""


@dataclass(frozen=True)
class Scenario:
    """What an arm is tried on.

    Attributes:
        workload: the requests.
        kv_blocks: KV blocks of 16 tokens.
        spread: standard deviation of the logarithm of step lengths.
        launch_spread: the same of the time to launch them.
        step_time: of the engine.
    """

    workload: Workload
    kv_blocks: int = KV_BLOCKS
    spread: float = 0.05
    launch_spread: float = 0.1
    step_time: GpuStepTime = field(default_factory=GpuStepTime)


def simulate(scenario: Scenario, arm: Arm, seed: int) -> tuple[Results, Figures]:
    """Run one arm until all requests have ended. The same seed gives the same result."""
    chance = Random(seed + 1)  # noqa: S311 - no secret
    timing = replace(
        scenario.step_time,
        spread=scenario.spread,
        launch_spread=scenario.launch_spread,
        random=chance,
    )
    engine = SimulatedEngine(
        Limits(arm.token_budget, arm.max_batch_size),
        KvBlocks(scenario.kv_blocks),
        timing,
        arm.options,
    )
    engine.recorder = results = Results()
    classes = scenario.workload.classes
    engine.adopt(Policy(Scope("compared"), Stamp(1, 0, 0), mode=arm.mode, classes=classes))
    sent: Counter[str] = Counter()
    for arrival in scenario.workload.arrivals(seed):
        engine.send(arrival)
        sent[arrival.class_name] += 1
    engine.run_to_the_end(LONGEST_RUN_S)
    return results, results.figures(classes, sent, engine.report().preemptions_total)


def table(
    scenario: Scenario, arms: Iterable[str], seeds: Sequence[int], logs: Path | None = None
) -> Iterable[str]:
    """Lines of a table: a row for each arm and seed.

    Args:
        scenario: what the arms are tried on.
        arms: their names.
        seeds: each gives other requests.
        logs: folder for a log of the steps of each run; None writes none.
    """
    names = [each.name for each in scenario.workload.classes]
    head = [f"{'arm':<14}", "seed"]
    for name in names:
        head += [f"{name[:10]:>10} %", "TTFT 50/99 ms", "TPOT 50/99 ms", "ITL 99 ms", "e2e 50/99 s"]
    yield " | ".join([*head, "tok/s", "drain s", "preempted", "steps", "busy %"])
    for arm in arms:
        for seed in seeds:
            results, figures = simulate(scenario, ARMS[arm], seed)
            if logs is not None:
                write(logs / f"{arm}-{seed}.csv", results.steps)
            yield " | ".join(_cells(arm, seed, names, figures))


def _cells(arm: str, seed: int, names: Iterable[str], figures: Figures) -> Iterable[str]:
    yield f"{arm:<14}"
    yield f"{seed:>4}"
    for name in names:
        found = figures.classes[name]
        yield f"{100 * found.attainment:12.1f}"
        yield f"{1e3 * found.ttft_s[0]:6.0f} {1e3 * found.ttft_s[1]:6.0f}"
        yield f"{1e3 * found.tpot_s[0]:6.1f} {1e3 * found.tpot_s[1]:6.1f}"
        yield f"{1e3 * found.itl_s[1]:9.0f}"
        yield f"{found.e2e_s[0]:5.1f} {found.e2e_s[1]:5.1f}"
    yield f"{figures.tokens_per_s:5.0f}"
    yield f"{figures.drain_s:7.1f}"
    yield f"{figures.preemptions:9d}"
    yield f"{figures.steps:5d}"
    yield f"{100 * figures.gpu_busy:6.1f}"


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="compare", description=__doc__)
    parser.add_argument("--load", nargs="+", default=["16+2"], help="chat+batch requests/s")
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=list(ARMS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--seconds", type=float, default=30.0, help="of arrivals")
    parser.add_argument("--ttft-ms", type=int, default=1000)
    parser.add_argument("--tpot-ms", type=int, default=30)
    parser.add_argument(
        "--tight-share", type=float, default=0.0, help="of chat, at --tight-tpot-ms"
    )
    parser.add_argument("--tight-tpot-ms", type=int, default=15)
    parser.add_argument("--long-share", type=float, default=0.0, help="of chat, with long prompts")
    parser.add_argument("--long-prompt", type=int, default=32_000)
    parser.add_argument("--cached-share", type=float, default=0.0, help="of chat prompts")
    parser.add_argument("--deadline-s", type=int, default=60, help="of batch")
    parser.add_argument("--kv-blocks", type=int, default=KV_BLOCKS)
    parser.add_argument("--batch-prompt", nargs=2, type=int, default=[2000, 8000])
    parser.add_argument("--logs", type=Path, help="folder for logs of steps, for one load")
    parser.add_argument("--spread", type=float, default=0.05, help="of step lengths")
    parser.add_argument("--launch-spread", type=float, default=0.1, help="of launches")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    given = _arguments().parse_args(arguments)
    for load in given.load:
        chat, _, batch = load.partition("+")
        workload = Workload(
            float(chat),
            float(batch or 0),
            given.seconds,
            batch_prompt=(given.batch_prompt[0], given.batch_prompt[1]),
            long_share=given.long_share,
            long_prompt=given.long_prompt,
            cached_share=given.cached_share,
            ttft_ms=given.ttft_ms,
            tpot_ms=given.tpot_ms,
            tight_share=given.tight_share,
            tight_tpot_ms=given.tight_tpot_ms,
            deadline_s=given.deadline_s,
        )
        scenario = Scenario(workload, given.kv_blocks, given.spread, given.launch_spread)
        sys.stdout.write(f"{load} requests/s, TPOT {given.tpot_ms} ms\n")
        for line in table(scenario, given.arms, given.seeds, given.logs):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
