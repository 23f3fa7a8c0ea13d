"""One run: an arm in force, a cold prefix cache, the workload, its figures."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headway_runtime.bench.analysis import summary
from headway_runtime.bench.arms import Arm
from headway_runtime.bench.classes.admission import admission_figures
from headway_runtime.bench.classes.completions import completion_figures
from headway_runtime.bench.classes.sharing import sharing_figures
from headway_runtime.bench.client import Target
from headway_runtime.bench.client_pool import ClientPool
from headway_runtime.bench.engine import Engine
from headway_runtime.bench.gpu_use import GpuUse
from headway_runtime.bench.hidden import restored, shown
from headway_runtime.bench.outcome import Ending, Outcome
from headway_runtime.bench.plan_figures import latest_record, plan_figures
from headway_runtime.bench.requests_table import table
from headway_runtime.bench.results import Result
from headway_runtime.bench.runs import Run
from headway_runtime.bench.step_figures import step_figures
from headway_runtime.bench.step_log import COLUMNS, Rows, column, read_steps
from headway_runtime.bench.workload import Request, Workload
from headway_runtime.policy import TrafficClass

_KNOCK_S = 60.0
_MAX_ERRORS = 5


@dataclass(frozen=True)
class Loaded:
    """What was seen while a workload was offered.

    Attributes:
        outcomes: what became of each request.
        gpu: the GPU's name, None if it is not known.
        gpu_busy_percent: share of time in which any kernel ran, None if it is not known.
        engine: its word when it took the arm, see :class:`arms_file.ArmsFile`.
        steps: rows of the engine's step log, see :mod:`headway_runtime.bench.step_log`.
        plans: see :func:`plan_figures.plan_figures`; None when the plug-in was not asked.
    """

    outcomes: list[Outcome]
    gpu: str | None
    gpu_busy_percent: float | None
    engine: Mapping[str, Any]
    steps: Rows
    plans: dict[str, Any] | None


@dataclass(frozen=True)
class Bench:
    """What all runs on one engine share.

    Attributes:
        engine: the engine under test.
        clients: the processes that load it.
        model: served model name.
        steps: its step log, None where it writes none.
        api_servers: its processes that talk to clients.
    """

    engine: Engine
    clients: ClientPool
    model: str
    steps: Path | None = None
    api_servers: int = 1

    def load(self, arm: Arm, workload: Workload, serial: int, give_up_s: float) -> Loaded:
        """Offer a workload to the engine under an arm.

        Raises:
            EngineError: the engine could not be made ready.
        """
        whole, workload = workload, shown(arm, workload)
        self.engine.reset_prefix_cache()
        word = self.engine.seat(
            arm, workload.classes, serial, lambda: self._knock(workload), workload.tenants
        )
        self.engine.reset_prefix_cache()
        target = Target(self.engine.url, self.model, give_up_s)
        before = latest_record(self.engine.run_dir)
        begun_s = time.monotonic()
        with GpuUse() as gpu:
            outcomes = restored(whole, self.clients.offer(workload.requests, target))
        # What was given up is out of the engine too, and its steps are written.
        self.engine.reset_prefix_cache()
        plans = plan_figures(before, latest_record(self.engine.run_dir))
        rows = self._rows(serial, begun_s)
        return Loaded(outcomes, gpu.gpu, gpu.mean_percent, word, rows, plans)

    def _rows(self, serial: int, begun_s: float) -> Rows:
        """The run's steps, without those of the request that made the engine change its arm."""
        if self.steps is None:
            return np.empty((0, len(COLUMNS)))
        rows = read_steps(self.steps, serial)
        return rows[column(rows, "schedule_s") >= begun_s]

    def _knock(self, workload: Workload) -> None:
        request = Request(0.0, workload.classes[0].name, 32, 4, tokens_seed=0)
        self.clients.offer([request], Target(self.engine.url, self.model, _KNOCK_S))


def result_of(run: Run, workload: Workload, loaded: Loaded) -> Result:
    """A run's result.

    Returns:
        A document of plain JSON values: what was run (``name``, ``shape``, ``scenario``,
        ``family``, ``load``, ``seed``, ``arm``, ``is_control``, ``classes``, ``duration_s``,
        ``offered_tokens_per_s``), on what (``engine_version``, ``engine_started_s``, which tells
        engine processes apart, ``async_scheduling``, ``gpu``), the figures of
        :func:`analysis.summary`, :func:`step_figures.step_figures` and
        :func:`plan_figures.plan_figures`, those about classes, tenants and programs of
        :mod:`classes.admission`, :mod:`classes.sharing` and :mod:`classes.completions` (None
        without tenants, without programs), and all requests as a :func:`requests_table.table`.
    """
    outcomes, classes = loaded.outcomes, workload.classes
    has_programs = any(each.program for each in workload.requests)
    return {
        "name": run.name,
        "shape": run.shape,
        "scenario": run.scenario.name,
        "family": run.scenario.family,
        "load": run.scenario.load,
        "seed": run.seed,
        "arm": run.arm.name,
        "is_control": run.is_control,
        "engine_version": loaded.engine["engine_version"],
        "engine_started_s": loaded.engine["engine_started_s"],
        "async_scheduling": loaded.engine["async_scheduling"],
        "gpu": loaded.gpu,
        "gpu_busy_percent": loaded.gpu_busy_percent,
        "classes": [asdict(each) for each in classes],
        "duration_s": workload.duration_s,
        "offered_tokens_per_s": _offered(workload),
        "errors": _errors(outcomes),
        "summary": summary(outcomes, classes, workload.duration_s),
        "steps": step_figures(loaded.steps),
        "plans": loaded.plans,
        "admission": admission_figures(outcomes, classes),
        "sharing": sharing_figures(outcomes, workload.tenants, classes)
        if workload.tenants
        else None,
        "programs": completion_figures(outcomes) if has_programs else None,
        "requests": table(outcomes, classes),
    }


def was_cut(result: Result) -> bool:
    """Whether requests were given up."""
    return bool(result["summary"]["endings"][Ending.TIMED_OUT.value])


def line(result: Result, classes: Sequence[TrafficClass]) -> str:
    """A run's result in one line."""
    figures = result["summary"]
    inside = ", ".join(f"{c.name} {figures['classes'][c.name]['attainment']}" for c in classes)
    endings = ", ".join(f"{name} {count}" for name, count in figures["endings"].items() if count)
    return (
        f"{result['name']}: inside {figures['attainment']} ({inside}), {endings}, "
        f"{figures['tokens_per_s']} tokens/s, drain {figures['drain_s']} s, "
        f"TTFT p99 {figures['ttft_ms']['p99']} ms, TPOT p99 {figures['tpot_ms']['p99']} ms, "
        f"ITL p99 {figures['itl_ms']['p99']} ms, "
        f"sent late p99 {figures['client_lateness_ms']['p99']} ms"
    )


def _offered(workload: Workload) -> float | None:
    return round(workload.tokens / workload.duration_s, 1) if workload.duration_s else None


def _errors(outcomes: Sequence[Outcome]) -> list[str]:
    """A few of what clients saw, each once."""
    return sorted({each.detail for each in outcomes if each.detail})[:_MAX_ERRORS]
