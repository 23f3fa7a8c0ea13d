"""Engines that are made up: a scheduler with vLLM's attributes, its statistics, its sources."""

from __future__ import annotations

import dataclasses
import enum
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from headway_runtime.exchange.class_record import ClassRecord
from headway_runtime.exchange.statistics_file import StatisticsWriter, file_name
from headway_runtime.exchange.statistics_record import NOT_TOLD, EngineState, Header, Load
from headway_runtime.exchange.step_record import StepRecord

BLANK = StepRecord(**dict.fromkeys((f.name for f in dataclasses.fields(StepRecord)), 0))


class Status(enum.Enum):
    """Those of vLLM's statuses that the tests need, under its names."""

    WAITING = 1
    WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR = 2
    WAITING_FOR_STREAMING_REQ = 3
    RUNNING = 4
    PREEMPTED = 5


class Request:
    """What the plug-in reads of a vLLM request; more of it is set where a test needs it."""

    def __init__(self, name: str, arrival_s: float = 0.0, extra_args: Any = None) -> None:
        self.request_id = name
        self.arrival_time = arrival_s
        self.sampling_params: Any = SimpleNamespace(extra_args=extra_args, stop=[])
        self.status: Any = Status.WAITING
        self.resumable = False
        self.num_tokens = 1
        self.num_computed_tokens = 0
        self.num_output_tokens = 0
        self.reason: str | None = None

    def get_finished_reason(self) -> Any:
        return None if self.reason is None else SimpleNamespace(name=self.reason)

    def is_finished(self) -> bool:
        return self.reason is not None


def request(name: str, arrival_s: float = 0.0, extra_args: Any = None) -> Any:
    """A request that waits."""
    return Request(name, arrival_s, extra_args)


def scheduler_output(tokens: int, new: Any = (), preempted: Any = None) -> Any:
    """What the plug-in reads of vLLM's ``SchedulerOutput``."""
    return SimpleNamespace(
        total_num_scheduled_tokens=tokens,
        preempted_req_ids=preempted,
        scheduled_new_reqs=[SimpleNamespace(req_id=name) for name in new],
        scheduled_cached_reqs=SimpleNamespace(resumed_req_ids=set()),
        num_scheduled_tokens=dict.fromkeys(new, 1),
    )


def core_output(name: str, tokens: int = 1, reason: str | None = None) -> Any:
    """What the plug-in reads of vLLM's ``EngineCoreOutput``."""
    return SimpleNamespace(
        request_id=name,
        new_token_ids=[0] * tokens,
        finish_reason=None if reason is None else SimpleNamespace(name=reason),
    )


def scheduler(**changed: Any) -> Any:
    """What the plug-in reads of a vLLM scheduler, of the newest versions unless changed."""
    attributes = {
        "max_num_scheduled_tokens": 2048,
        "max_num_running_reqs": 64,
        "max_num_active_reqs": 64,
        "num_spec_tokens": 0,
        "waiting": deque(),
        "running": [],
        "requests": {},
        "kv_cache_config": SimpleNamespace(kv_cache_groups=[]),
        "vllm_config": configuration(),
    }
    return SimpleNamespace(**{**attributes, **changed})


def configuration(**changed: Any) -> Any:
    """VLLM's configuration; a key like ``model_config__is_hybrid`` changes a nested one."""
    made = SimpleNamespace(
        model_config=SimpleNamespace(
            runner_type="generate",
            is_encoder_decoder=False,
            is_diffusion=False,
            is_hybrid=False,
            is_multimodal_model=False,
        ),
        scheduler_config=SimpleNamespace(
            policy="fcfs", enable_chunked_prefill=True, disable_chunked_mm_input=False
        ),
        parallel_config=SimpleNamespace(pipeline_parallel_size=1),
        kv_transfer_config=None,
        ec_transfer_config=None,
    )
    for key, value in changed.items():
        *path, name = key.split("__")
        holder = made
        for each in path:
            holder = getattr(holder, each)
        setattr(holder, name, value)
    return made


def write_statistics(  # noqa: PLR0913 - each is one thing that a file can hold
    run_dir: Path,
    *records: StepRecord,
    running: int = 0,
    waiting: int = 0,
    rank: int = 0,
    classes: Sequence[ClassRecord] = (),
    gpus: tuple[int, int] = (0, 0),
    sampled_ns: int = 0,
    offered: tuple[int, int] = (NOT_TOLD, NOT_TOLD),
    stretch: int = NOT_TOLD,
    written_ns: int = 1,
    **header: Any,
) -> None:
    """A statistics file with these records, numbered from 1."""
    values = {
        "pid": 1,
        "process_started_ticks": 1,
        "container_started_ticks": 1,
        "rank": rank,
        "state": int(EngineState.ACTIVE),
        "token_budget_ceiling": 2048,
        "max_batch_ceiling": 64,
        "slots": 1024,
        "refused_policies": 0,
        "set_aside_requests": 0,
        "stock_reason": "",
        "engine_version": "0.32.0",
    }
    writer = StatisticsWriter(run_dir / file_name(rank), Header(**{**values, **header}))
    for number, record in enumerate(records, 1):
        writer.append(dataclasses.replace(record, step=number))
    load = Load(written_ns, len(records), running, waiting, *gpus, sampled_ns, *offered, stretch)
    writer.write_load(load)
    for slot, each in enumerate(classes):
        writer.write_class(slot, each)
    writer.close()


def write_vllm(directory: Path, version: str = "0.32.0", flags: int = 120) -> Path:
    """Sources of a vLLM with made-up flags next to some real ones."""
    package = directory / "vllm"
    files = {
        "__init__.py": "raise RuntimeError('imported')\n",
        "_version.py": f"__version__ = version = '{version}'\n",
        "engine/arg_utils.py": _ARGUMENTS
        + "".join(f'    group.add_argument("--flag-{number}", **kw)\n' for number in range(flags)),
        "entrypoints/openai/api_server.py": "",
        "entrypoints/anywhere/cli_args.py": _FRONTEND,
        "v1/core/sched/async_scheduler.py": "",
    }
    for name, text in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
    return package


_ARGUMENTS = """
def add_cli_args(group):
    group.add_argument("--model", **kw)
    group.add_argument("--dtype", **kw)
    group.add_argument("--served-model-name", **kw)
    group.add_argument("--max-num-seqs", **kw)
    group.add_argument("--max-num-batched-tokens", **kw)
    group.add_argument("--max-model-len", **kw)
    group.add_argument("--enforce-eager", action="store_true")
    group.add_argument("--async-scheduling", action=argparse.BooleanOptionalAction)
    group.add_argument("--quantization", "-q", **kw)
    group.add_argument("--tensor-parallel-size", "-tp", **kw)
    group.add_argument("--compilation-config", "-cc", **kw)
"""

_FRONTEND = """
@config
class BaseFrontendArgs:
    enable_auto_tool_choice: bool = False
    tool_call_parser: str | None = None
    lora_modules: list | None = None

class FrontendArgs(BaseFrontendArgs):
    port: int = 8000

    @classmethod
    def add_cli_args(cls, parser):
        for key, value in kwargs.items():
            frontend_group.add_argument(*extra_flags, f"--{key.replace('_', '-')}", **value)

class NotArguments:
    not_a_flag: int = 0

def make_arg_parser(parser):
    parser.add_argument("model_tag", type=str)
    parser.add_argument("--headless", action="store_true")
"""
