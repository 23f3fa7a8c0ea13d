"""A control over a made-up scheduler."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from headway_runtime.exchange import policy_file, statistics_file
from headway_runtime.exchange.policy_watch import PolicyWatch
from headway_runtime.exchange.statistics_file import StatisticsWriter
from headway_runtime.exchange.statistics_record import EngineState, Header
from headway_runtime.executors.vllm.adapters import ActiveLimitAdapter
from headway_runtime.executors.vllm.control import StepControl
from headway_runtime.executors.vllm.journal import Journal
from headway_runtime.executors.vllm.step_account import EngineLoad
from headway_runtime.policy import encode
from tests.unit.runtime.engines import core_output, scheduler, scheduler_output
from tests.unit.runtime.policies import policy

HEADER = Header(1, 1, 1, 0, int(EngineState.ACTIVE), 2048, 64, 64, 0, 0, "", "0.32.0")


class Bench:
    """A control over a made-up scheduler, and what the scheduler was run with."""

    def __init__(self, run_dir: Path, *, supported: Any = True) -> None:
        self.run_dir = run_dir
        self.scheduler = scheduler()
        self.adapter = ActiveLimitAdapter(self.scheduler)
        self.load = EngineLoad(running=1, waiting=2, kv_usage=0.5)
        self.seen = []
        writer = StatisticsWriter(run_dir / statistics_file.file_name(0), HEADER)
        self.control = StepControl(
            executor=self.adapter if supported else None,
            ceilings=self.adapter.ceilings,
            watch=PolicyWatch(run_dir / policy_file.FILE_NAME),
            journal=Journal(writer, HEADER),
            load=lambda: self.load,
        )

    def publish(self, counter: Any, **fields: Any) -> None:
        policy_file.write(
            self.run_dir / policy_file.FILE_NAME, encode(policy(1, 1, counter, **fields))
        )

    def stock(self) -> Any:
        self.seen.append(
            (self.scheduler.max_num_scheduled_tokens, self.scheduler.max_num_active_reqs)
        )
        return scheduler_output(10, preempted={"p"})

    def step(self) -> Any:
        output = self.control.schedule(self.stock)
        self.finish(output)
        return self.record

    def finish(self, output: Any, tokens: Any = 3) -> Any:
        outputs = [core_output("someone", tokens)]
        return self.control.update(output, lambda: {0: SimpleNamespace(outputs=outputs)})

    @property
    def statistics(self) -> Any:
        return statistics_file.read(self.run_dir / statistics_file.file_name(0), 100)

    @property
    def record(self) -> Any:
        return self.statistics.latest
