"""Runs scenarios under arms on a simulated engine, and writes results as those of a real one.

The figures are those of a model of an engine: good to find what is wrong with a way to schedule,
and to choose what to measure, never a claim about a GPU.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from typing import Any

from headway_runtime.bench import results
from headway_runtime.bench.command_line import Settings, parser, read_settings
from headway_runtime.bench.measure import line, result_of
from headway_runtime.bench.runs import Run, pending
from headway_runtime.bench.simulated import SIMULATED, SimulatedGpu, simulate


def main(arguments: list[str]) -> int:
    """Command line; the process's exit code: 0 when every run was made, 3 when some are left."""
    begun_s = time.monotonic()
    options = _parser().parse_args(arguments)
    settings = read_settings(options, begun_s)
    gpu = SimulatedGpu()
    if options.launch_ms:
        decode_s, graph_s, eager_s = (each / 1000 for each in options.launch_ms)
        launches = {"decode_launch_s": decode_s, "graph_launch_s": graph_s}
        gpu = replace(gpu, timing=replace(gpu.timing, **launches, eager_launch_s=eager_s))
    if options.host_us:
        decide_s, update_s, plan_s = (each / 1e6 for each in options.host_us)
        host = {"decide_request_s": decide_s, "update_request_s": update_s}
        gpu = replace(gpu, timing=replace(gpu.timing, **host), plan_request_s=plan_s)
    done = results.done([options.out, *options.done])
    left = 0
    for kv_blocks in {scenario.kv_blocks for g in settings.groups for scenario in g.scenarios}:
        for run in pending(settings.groups, SIMULATED, done, kv_blocks):
            if settings.left_s <= 0:
                left += 1
                continue
            _make(run, settings, gpu, {"launch_ms": options.launch_ms, "host_us": options.host_us})
    return 3 if left else 0


def _parser() -> argparse.ArgumentParser:
    of_runs = parser("simulate", __doc__)
    of_runs.add_argument(
        "--launch-ms",
        type=float,
        nargs=3,
        metavar=("DECODE", "GRAPH", "EAGER"),
        help="time to launch a step that only decodes, that is a CUDA graph, that is none (as "
        "headway_runtime.bench.fit tells of a real engine)",
    )
    of_runs.add_argument(
        "--host-us",
        type=float,
        nargs=3,
        metavar=("DECIDE", "UPDATE", "PLAN"),
        help="processor time for each request of a step: to decide it, to take in its output, and "
        "what planning adds",
    )
    return of_runs


def _make(run: Run, settings: Settings, gpu: SimulatedGpu, host: dict[str, Any]) -> None:
    if run.scenario.kv_blocks is not None:
        gpu = replace(gpu, kv_blocks=run.scenario.kv_blocks)
    workload = settings.workload(run)
    loaded = simulate(gpu, run.arm, workload, run.seed, workload.duration_s + settings.drain_s)
    result = {
        **result_of(run, workload, loaded),
        **settings.told(run.scenario),
        "kv_blocks": gpu.kv_blocks,
        "host": host,
    }
    results.write(settings.out, result)
    if settings.keeps_steps:
        results.write_steps(settings.out, run.name, loaded.steps)
    print(line(result, workload.classes), flush=True)  # noqa: T201 - a command-line program


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
