"""A run on a simulated engine instead of a real one: same requests, same arms, same figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from random import Random

from headway_runtime.bench.arms import Arm, Kind, Order, priorities
from headway_runtime.bench.door import door_of
from headway_runtime.bench.hidden import restored, shown
from headway_runtime.bench.measure import Loaded
from headway_runtime.bench.recording import Recording
from headway_runtime.bench.rivals.choice import rival_of, rule_of
from headway_runtime.bench.rule_in_force import RuleInForce
from headway_runtime.bench.traces import PREFIX_BLOCK_TOKENS
from headway_runtime.bench.workload import Request as Offered
from headway_runtime.bench.workload import Workload
from headway_runtime.executors.simulated.engine import SimulatedEngine
from headway_runtime.executors.simulated.kv_blocks import KvBlocks
from headway_runtime.executors.simulated.options import EngineOptions
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
        plan_request_s: what planning adds to the time to decide a step, for each request in it.
    """

    timing: GpuStepTime = field(
        default_factory=lambda: GpuStepTime(spread=0.05, launch_spread=0.15)
    )
    kv_blocks: int = KV_BLOCKS
    plan_request_s: float = 0.0


def simulate(
    gpu: SimulatedGpu, arm: Arm, workload: Workload, seed: int, give_up_s: float
) -> Loaded:
    """Offer a workload to a simulated engine under an arm. The same seed gives the same result."""
    whole, workload = workload, shown(arm, workload)
    timing = replace(gpu.timing, random=Random(seed))  # noqa: S311 - no secret
    if arm.is_planned:
        decide_s = timing.decide_request_s + gpu.plan_request_s
        timing = replace(timing, decide_request_s=decide_s)
    engine = SimulatedEngine(
        Limits(min(arm.token_budget or TOKEN_BUDGET, TOKEN_BUDGET), BATCH_SIZE),
        KvBlocks(gpu.kv_blocks),
        timing,
        _options(arm, workload),
    )
    rival = rival_of(arm)
    engine.planner = rival.planner
    rule = rule_of(arm, {each.name: each.weight for each in workload.tenants})
    engine.recorder = recording = Recording(
        engine,
        workload.requests,
        list(_cached(workload.requests)),
        RuleInForce(rule, engine) if rule is not None else None,
    )
    engine.door = door_of(arm, engine, workload.classes)
    engine.adopt(_policy(arm, workload))
    recording.begin()
    with rival.in_force():
        engine.run_to_the_end(give_up_s)
    return Loaded(
        outcomes=restored(whole, recording.outcomes()),
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


def _policy(arm: Arm, workload: Workload) -> Policy:
    return Policy(
        Scope("benchmark"),
        Stamp(1, 0, 0),
        mode=Mode.ACT if arm.is_planned else Mode.OFF,
        classes=workload.classes,
        tenants=workload.tenants,
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
