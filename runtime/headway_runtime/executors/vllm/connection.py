"""Connects an adapter with those who let requests into its engine."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from headway_runtime.exchange import admission_board
from headway_runtime.exchange.tenant_seal import TenantSeal
from headway_runtime.executors.vllm.adapter import Adapter
from headway_runtime.executors.vllm.board_keeper import BoardKeeper
from headway_runtime.executors.vllm.request_origin import origin_of
from headway_runtime.scheduling.origin import Origin

_LOGGER = logging.getLogger("vllm.headway")


def connect(adapter: Adapter, run_dir: Path, rank: int) -> None:
    """Let the adapter know whose requests are, and let others know what waits. Never fails.

    Without the seal nobody is told apart, and without the board nobody is refused.

    Args:
        adapter: of an engine to which no request has come.
        run_dir: the directory shared with those who let requests in.
        rank: the engine's data parallel rank.
    """
    seal = _seal(run_dir)

    def origin(request: Any) -> Origin:
        return origin_of(request, seal)

    adapter.room.origins.tells_by(origin)
    try:
        writer = admission_board.AdmissionBoardWriter(run_dir / admission_board.file_name(rank))
    except Exception:
        _LOGGER.exception("Headway does not tell how long requests would wait")
    else:
        adapter.board = BoardKeeper(writer)


def _seal(run_dir: Path) -> TenantSeal | None:
    try:
        return TenantSeal.of_run(run_dir)
    except Exception:
        _LOGGER.exception("Headway cannot tell tenants apart")
        return None
