"""Puts a :class:`StepControl` on a vLLM scheduler."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from vllm.version import __version__ as engine_version

from headway_runtime.exchange import policy_file, statistics_file
from headway_runtime.exchange.statistics_record import EngineState, Header
from headway_runtime.executors.vllm.adapter import Adapter
from headway_runtime.executors.vllm.control import StepControl
from headway_runtime.executors.vllm.gpu_utilisation import GpuUtilisation
from headway_runtime.executors.vllm.journal import Journal
from headway_runtime.executors.vllm.policy_watch import PolicyWatch
from headway_runtime.executors.vllm.step_account import EngineLoad
from headway_runtime.executors.vllm.support import UnsupportedEngineError, choose_adapter
from headway_runtime.scheduling.view import Limits

_LOGGER = logging.getLogger("vllm.headway")

_Value = TypeVar("_Value")

RUN_DIR_VARIABLE = "HEADWAY_RUN_DIR"
"""Environment variable that names the directory shared with the sidecar."""


def attach(scheduler: Any) -> StepControl:
    """Control over a scheduler that has just been constructed. Never fails.

    An engine that plans cannot drive, or that has no shared directory, keeps its own decisions.
    """
    run_dir = os.environ.get(RUN_DIR_VARIABLE)
    adapter, stock_reason = _adapter(scheduler, run_dir)
    ceilings = adapter.ceilings if adapter is not None else _stock_limits(scheduler)
    header = _header(scheduler, ceilings, stock_reason)
    _LOGGER.info("Headway %s", _announcement(ceilings, stock_reason))
    return StepControl(
        executor=adapter,
        ceilings=ceilings,
        watch=PolicyWatch(Path(run_dir or os.devnull) / policy_file.FILE_NAME),
        journal=Journal(_writer(run_dir, header), header, GpuUtilisation(os.environ)),
        load=lambda: _load(scheduler),
    )


def _adapter(scheduler: Any, run_dir: str | None) -> tuple[Adapter | None, str]:
    if run_dir is None:
        return None, "NoRunDirectory"
    try:
        return choose_adapter(scheduler, engine_version), ""
    except UnsupportedEngineError as error:
        return None, str(error)
    except Exception:
        # An engine whose insides have changed so much that they cannot even be probed still serves.
        _LOGGER.exception("Headway could not probe this engine")
        return None, "ProbeFailed"


def _announcement(ceilings: Limits, stock_reason: str) -> str:
    if stock_reason:
        return f"leaves this engine alone: {stock_reason}"
    return (
        f"plans this engine's steps within a token budget of {ceilings.token_budget} "
        f"and a batch size of {ceilings.max_batch_size}"
    )


def _ask(question: Callable[[], _Value], otherwise: _Value) -> _Value:
    """What the engine answers, or something else where its insides are not as expected."""
    try:
        return question()
    except Exception:
        _LOGGER.exception("Headway does not know its way around this engine")
        return otherwise


def _stock_limits(scheduler: Any) -> Limits:
    def limits() -> Limits:
        scheduling = scheduler.vllm_config.scheduler_config
        return Limits(scheduling.max_num_batched_tokens, scheduling.max_num_seqs)

    return _ask(limits, Limits(0, 0))


def _header(scheduler: Any, ceilings: Limits, stock_reason: str) -> Header:
    return Header(
        pid=os.getpid(),
        process_started_ticks=statistics_file.process_started_ticks(os.getpid()) or 0,
        rank=_ask(lambda: _rank(scheduler), 0),
        state=int(EngineState.STOCK if stock_reason else EngineState.ACTIVE),
        token_budget_ceiling=ceilings.token_budget,
        max_batch_ceiling=ceilings.max_batch_size,
        slots=statistics_file.SLOTS,
        refused_policies=0,
        stock_reason=stock_reason,
        engine_version=engine_version,
    )


def _rank(scheduler: Any) -> int:
    parallel = scheduler.vllm_config.parallel_config
    # The index stays apart between engines that vLLM runs as independent ranks, all numbered 0.
    return int(getattr(parallel, "data_parallel_index", parallel.data_parallel_rank))


def _writer(run_dir: str | None, header: Header) -> statistics_file.StatisticsWriter | None:
    if run_dir is None:
        return None
    path = Path(run_dir) / statistics_file.file_name(header.rank)
    try:
        return statistics_file.StatisticsWriter(path, header)
    except Exception:
        # Whatever it is, the engine serves without them.
        _LOGGER.exception("Headway writes no statistics")
        return None


def _load(scheduler: Any) -> EngineLoad:
    running, waiting = scheduler.get_request_counts()
    return EngineLoad(running, waiting, scheduler.kv_cache_manager.usage)
