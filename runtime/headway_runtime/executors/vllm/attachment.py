"""Puts a :class:`StepControl` on a vLLM scheduler."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from vllm.version import __version__ as engine_version

from headway_runtime.exchange import (
    history_file,
    policy_file,
    statistics_file,
    tenant_totals,
)
from headway_runtime.exchange.policy_watch import PolicyWatch
from headway_runtime.exchange.statistics_record import EngineState, Header
from headway_runtime.executors.vllm.adapter import Adapter
from headway_runtime.executors.vllm.class_accounts import ClassAccounts
from headway_runtime.executors.vllm.connection import connect
from headway_runtime.executors.vllm.control import StepControl
from headway_runtime.executors.vllm.crash_watch import CrashWatch
from headway_runtime.executors.vllm.followed import TenantOf, one_tenant
from headway_runtime.executors.vllm.gpu_utilisation import GpuUtilisation
from headway_runtime.executors.vllm.history_log import HistoryLog
from headway_runtime.executors.vllm.journal import Journal
from headway_runtime.executors.vllm.request_histories import RequestHistories
from headway_runtime.executors.vllm.step_account import EngineLoad
from headway_runtime.executors.vllm.support import UnsupportedEngineError, choose_adapter
from headway_runtime.executors.vllm.tenant_accounts import TenantAccounts
from headway_runtime.executors.vllm.tracing import request_spans
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
    if adapter is not None and run_dir is not None:
        connect(adapter, Path(run_dir), header.rank)
    _LOGGER.info("Headway %s", _announcement(ceilings, stock_reason))
    tenant_of = _tenant_of(adapter)
    journal = _journal(scheduler, run_dir, header, tenant_of)
    if adapter is not None:
        adapter.room.set_aside.tell = journal.set_aside
    return StepControl(
        executor=adapter,
        ceilings=ceilings,
        watch=PolicyWatch(Path(run_dir or os.devnull) / policy_file.FILE_NAME),
        journal=journal,
        load=lambda: _load(scheduler, adapter),
        crashes=_crash_watch(run_dir, header.rank, tenant_of),
    )


def _tenant_of(adapter: Adapter | None) -> TenantOf:
    if adapter is None:
        return one_tenant
    origins = adapter.room.origins
    return lambda request: origins.of(request.request_id).tenant


def _journal(scheduler: Any, run_dir: str | None, header: Header, tenant_of: TenantOf) -> Journal:
    classes = ClassAccounts()
    spans = _ask(lambda: request_spans(scheduler.vllm_config), None)
    log = HistoryLog(_history_writer(run_dir, header.rank), spans)

    def is_in_engine(request: Any) -> bool:
        return scheduler.requests.get(request.request_id) is request

    tenants = TenantAccounts(_tenants_writer(run_dir, header.rank))
    histories = RequestHistories(classes, log, tenant_of, is_in_engine, tenants)
    writer = _writer(run_dir, header)
    return Journal(writer, header, GpuUtilisation(os.environ), classes, histories)


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
        container_started_ticks=statistics_file.container_started_ticks(),
        rank=_ask(lambda: _rank(scheduler), 0),
        state=int(EngineState.STOCK if stock_reason else EngineState.ACTIVE),
        token_budget_ceiling=ceilings.token_budget,
        max_batch_ceiling=ceilings.max_batch_size,
        slots=statistics_file.SLOTS,
        refused_policies=0,
        set_aside_requests=0,
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


def _history_writer(run_dir: str | None, rank: int) -> history_file.HistoryWriter | None:
    if run_dir is None:
        return None
    try:
        return history_file.HistoryWriter(Path(run_dir) / history_file.file_name(rank))
    except Exception:
        # Whatever it is, the engine serves without them.
        _LOGGER.exception("Headway writes no histories of requests")
        return None


def _tenants_writer(run_dir: str | None, rank: int) -> tenant_totals.TenantTotalsWriter | None:
    if run_dir is None:
        return None
    try:
        return tenant_totals.TenantTotalsWriter(Path(run_dir) / tenant_totals.file_name(rank))
    except Exception:
        # Whatever it is, the engine serves without them.
        _LOGGER.exception("Headway writes no totals of tenants")
        return None


def _crash_watch(run_dir: str | None, rank: int, tenant_of: TenantOf) -> CrashWatch | None:
    if run_dir is None:
        return None
    try:
        return CrashWatch.of_run(Path(run_dir), rank, tenant_of)
    except Exception:
        # Whatever it is, the engine serves, and nobody is suspected.
        _LOGGER.exception("Headway does not keep who is under way")
        return None


def _load(scheduler: Any, adapter: Adapter | None) -> EngineLoad:
    running, waiting = scheduler.get_request_counts()
    usage = scheduler.kv_cache_manager.usage
    if adapter is None:
        return EngineLoad(running, waiting, usage)
    ratios = adapter.load_ratios(waiting)
    return EngineLoad(running, waiting, usage, ratios, adapter.program_stretch)
