"""How the engine under test is started: vLLM's command line and environment. Pure."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SCHEDULER = "headway_runtime.bench.arm_scheduler.ArmScheduler"
DOOR = "headway_runtime.door.middleware.Door"
MODEL_NAME = "model"
RUN_DIR = "run"
STEP_LOG = "steps.f64"
RUN_DIR_VARIABLE = "HEADWAY_RUN_DIR"
STEP_LOG_VARIABLE = "HEADWAY_STEP_LOG"

MAX_BATCHED_TOKENS = 8192
MAX_SEQS = 256


@dataclass(frozen=True)
class Start:
    """How an engine is started.

    Attributes:
        shape: the model's shape.
        port: where it listens.
        kv_blocks: KV blocks it is to have; None leaves it to vLLM.
        api_servers: processes that talk to clients; one may not keep up with a small model.
        queued: open requests from which on vLLM refuses more, for the arms that are named after it;
            None refuses nobody.
        model: folder of a real model that is served instead of one of random weights.
        extra: more arguments of vLLM's.
    """

    shape: str
    port: int = 8100
    kv_blocks: int | None = None
    api_servers: int = 1
    queued: int | None = None
    model: Path | None = None
    extra: tuple[str, ...] = ()


def command(model: Path, wanted: Start) -> list[str]:
    """The engine's command line."""
    limited = (
        [] if wanted.kv_blocks is None else ["--num-gpu-blocks-override", str(wanted.kv_blocks)]
    )
    # Only vLLM's own command can start several.
    program = (
        ["vllm.entrypoints.openai.api_server"]
        if wanted.api_servers == 1
        else ["headway_runtime.executors.vllm.serve", "--api-server-count", str(wanted.api_servers)]
    )
    return [
        *(sys.executable, "-m", *program),
        *("--model", str(model), "--served-model-name", MODEL_NAME),
        *("--load-format", "dummy" if wanted.model is None else "auto"),
        *("--generation-config", "vllm", "--host", "127.0.0.1", "--port", str(wanted.port)),
        *("--scheduler-cls", SCHEDULER, "--async-scheduling", "--enable-prefix-caching"),
        # It tells tenants apart, in all arms, and refuses requests where the policy says so.
        *("--middleware", DOOR),
        *("--max-num-batched-tokens", str(MAX_BATCHED_TOKENS), "--max-num-seqs", str(MAX_SEQS)),
        # Its log of every request would cost all arms time that no user of theirs pays.
        "--disable-uvicorn-access-log",
        *limited,
        *([] if wanted.queued is None else ["--max-num-queued-reqs", str(wanted.queued)]),
        *wanted.extra,
    ]


def environment(state: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """The engine's environment.

    Args:
        state: directory of all its files.
        inherited: environment of the process that starts it.
    """
    return {
        **inherited,
        RUN_DIR_VARIABLE: str(state / RUN_DIR),
        STEP_LOG_VARIABLE: str(state / STEP_LOG),
        # For /reset_prefix_cache.
        "VLLM_SERVER_DEV_MODE": "1",
        "HF_HUB_OFFLINE": "1",
    }
