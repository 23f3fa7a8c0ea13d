"""A run on a simulated engine instead of a real one: same requests, same arms, same figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

import numpy as np

from headway_runtime.bench.arms import Arm, Kind, Order, priorities
from headway_runtime.bench.measure import Loaded
from headway_runtime.bench.outcome import Ending, Outcome
from headway_runtime.bench.rivals.choice import rival_of
from headway_runtime.bench.step_log import COLUMNS
from headway_runtime.bench.traces import PREFIX_BLOCK_TOKENS
from headway_runtime.bench.workload import Request as Offered
from headway_runtime.bench.workload import Workload
from headway_runtime.executors.simulated.engine import SimulatedEngine
from headway_runtime.executors.simulated.kv_blocks import KvBlocks
from headway_runtime.executors.simulated.options import EngineOptions
from headway_runtime.executors.simulated.pipeline import Launched
from headway_runtime.executors.simulated.request import Arrival, Request
from headway_runtime.executors.simulated.step_time import GpuStepTime
from headway_runtime.policy import Mode, Policy, Scope, Stamp
from headway_runtime.scheduling.view import Limits

KV_BLOCKS = 47_000
"""Of 16 tokens, beside a model of 8 billion parameters in the memory of one H200."""

TOKEN_BUDGET = 8192
BATCH_SIZE = 256
"""Limits that :mod:`headway_runtime.bench.engine_command` starts engines with."""

SIMULATED = "simulated"


@dataclass(frozen=True)
class SimulatedGpu:
    """The engine that is simulated.

    Attributes:
        timing: how long its steps take.
        kv_blocks: KV blocks of 16 tokens.
    """

    timing: GpuStepTime = field(
        default_factory=lambda: GpuStepTime(spread=0.05, launch_spread=0.15)
    )
    kv_blocks: int = KV_BLOCKS


def simulate(
    gpu: SimulatedGpu, arm: Arm, workload: Workload, seed: int, give_up_s: float
) -> Loaded:
    """Offer a workload to a simulated engine under an arm. The same seed gives the same result."""
    timing = replace(gpu.timing, random=Random(seed))  # noqa: S311 - no secret
    engine = SimulatedEngine(
        Limits(min(arm.token_budget or TOKEN_BUDGET, TOKEN_BUDGET), BATCH_SIZE),
        KvBlocks(gpu.kv_blocks),
        timing,
        _options(arm, workload),
    )
    rival = rival_of(arm)
    engine.planner = rival.planner
    engine.recorder = recording = _Recording(engine)
    mode = Mode.ACT if arm.is_planned else Mode.OFF
    engine.adopt(Policy(Scope("benchmark"), Stamp(1, 0, 0), mode=mode, classes=workload.classes))
    for request, cached_tokens in zip(workload.requests, _cached(workload.requests), strict=True):
        engine.send(_arrival(request, cached_tokens))
    with rival.in_force():
        engine.run_to_the_end(give_up_s)
    return Loaded(
        outcomes=recording.outcomes(workload.requests),
        gpu=SIMULATED,
        gpu_busy_percent=recording.busy_percent,
        engine={
            "engine_version": SIMULATED,
            "engine_started_s": 0,
            "async_scheduling": timing.steps_under_way > 1,
        },
        steps=recording.rows,
        plans=None,
    )


def _options(arm: Arm, workload: Workload) -> EngineOptions:
    by_priority = arm.kind is Kind.STOCK and arm.order is Order.PRIORITY
    return EngineOptions(
        priorities=priorities(workload.classes) if by_priority else None,
        long_prefill_tokens=arm.long_prefill_threshold,
        static_batch=arm.batch,
    )


def _cached(requests: Iterable[Offered]) -> Iterable[int]:
    """Prompt tokens that earlier requests have left in the prefix cache, which forgets nothing."""
    seen: set[tuple[int, ...]] = set()
    for each in requests:
        blocks = each.prefix_blocks
        prefixes = [blocks[: length + 1] for length in range(len(blocks))]
        known = next((n for n, prefix in enumerate(prefixes) if prefix not in seen), len(blocks))
        seen.update(prefixes)
        # At least one token is computed.
        yield min(known * PREFIX_BLOCK_TOKENS, each.prompt_tokens - 1)


def _arrival(request: Offered, cached_tokens: int) -> Arrival:
    return Arrival(
        request.arrival_s,
        request.class_name,
        request.prompt_tokens,
        request.output_tokens,
        cached_tokens,
    )


class _Recording:
    """Times of all tokens and steps; see :class:`executors.simulated.recorder.Recorder`."""

    def __init__(self, engine: SimulatedEngine) -> None:
        self._engine = engine
        self._tokens: dict[str, list[float]] = defaultdict(list)
        self._rows: list[list[float]] = []
        self._busy_s = 0.0

    def launched(self, launched: Launched, waiting: int) -> None:
        """A step was launched; so many requests wait."""
        shape, now = launched.step.shape, self._engine.report()
        self._busy_s += launched.ended_s - launched.began_s
        step = {
            "schedule_s": launched.scheduled_s,
            "scheduled_s": launched.scheduled_s,
            "launched_s": launched.launched_s,
            "update_s": launched.ended_s,
            "prefill_tokens": shape.prefill_tokens,
            "decodes": shape.decodes,
            "decode_context": shape.decode_context,
            "attention_pairs": shape.attention_pairs,
            "tokens": shape.tokens,
            "running": now.running,
            "waiting": waiting,
            "kv_usage": now.kv_usage,
            "token_budget": now.token_budget,
            "preemptions": len(launched.step.preempted),
        }
        self._rows.append([float(step.get(name, 0)) for name in COLUMNS])

    def token(self, request: Request, now_s: float) -> None:
        """A request got a token."""
        self._tokens[request.request_id].append(now_s)

    @property
    def rows(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """Rows of a step log."""
        return np.array(self._rows).reshape(-1, len(COLUMNS))

    @property
    def busy_percent(self) -> float | None:
        """Share of the time in which the GPU worked, waits for launches counted as work."""
        return round(100 * self._busy_s / self._engine.now_s, 1) if self._rows else None

    def outcomes(self, requests: Sequence[Offered]) -> list[Outcome]:
        """What became of each; the engine numbers requests in order of arrival, from 1."""
        return [
            self._outcome(each, self._tokens[str(number)])
            for number, each in enumerate(requests, start=1)
        ]

    def _outcome(self, request: Offered, token_s: list[float]) -> Outcome:
        is_complete = len(token_s) == request.output_tokens
        return Outcome(
            class_name=request.class_name,
            prompt_tokens=request.prompt_tokens,
            output_tokens=request.output_tokens,
            planned_s=request.arrival_s,
            sent_s=request.arrival_s,
            ending=Ending.COMPLETE if is_complete else Ending.TIMED_OUT,
            ended_s=token_s[-1] if is_complete else self._engine.now_s,
            token_s=tuple(token_s),
        )
