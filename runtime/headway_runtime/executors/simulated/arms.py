"""Ways to schedule that are compared: engines as they come, static settings, and the planner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headway_runtime.executors.simulated.options import EngineOptions
from headway_runtime.policy import Mode

CHAT = "chat"
BATCH = "batch"


@dataclass(frozen=True)
class Arm:
    """One way to schedule.

    Attributes:
        token_budget: most tokens of a step.
        options: how the engine schedules by itself.
        mode: whether the planner drives it.
        max_batch_size: most requests running at once.
    """

    token_budget: int = 8192
    options: EngineOptions = field(default_factory=EngineOptions)
    mode: Mode = Mode.OFF
    max_batch_size: int = 256


_CHAT_FIRST = EngineOptions(priorities={CHAT: 0, BATCH: 1})

ARMS: Mapping[str, Arm] = {
    "stock": Arm(),
    "fcfs-2048": Arm(2048),
    "fcfs-512": Arm(512),
    "priority": Arm(options=_CHAT_FIRST),
    "priority-2048": Arm(2048, _CHAT_FIRST),
    "priority-512": Arm(512, _CHAT_FIRST),
    "priority-256": Arm(256, _CHAT_FIRST),
    "long-1024": Arm(options=EngineOptions(long_prefill_tokens=1024)),
    "static-32": Arm(options=EngineOptions(static_batch=32)),
    "static-64": Arm(options=EngineOptions(static_batch=64)),
    "static-128": Arm(options=EngineOptions(static_batch=128)),
    "planner": Arm(mode=Mode.ACT),
}
"""By name. All but the last run without the planner."""
