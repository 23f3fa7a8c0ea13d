"""A door between clients and an engine that is made up."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from headway_runtime.door.middleware import Door
from headway_runtime.exchange.admission_board import AdmissionBoardWriter
from headway_runtime.exchange.tenant_seal import TenantSeal
from headway_runtime.policy import Policy, Tenant, TrafficClass, WhenUnmet
from headway_runtime.scheduling.admission.refusal import Board, ClassWait
from tests.unit.door.asgi_client import CHAT, Engine
from tests.unit.runtime.policies import policy

PATHS = (CHAT, f"{CHAT}/batch", "/v1/completions", "/v1/responses", "/v1/messages", "/invocations")
SHED = TrafficClass("shed", ttft_ms=500, when_unmet=WhenUnmet.SHED)
SHORT = TrafficClass("short", ttft_ms=500, max_queued=2)
BATCH = TrafficClass("batch")
ACME = Tenant("acme", key_sha256=hashlib.sha256(b"acme-key").hexdigest())
LIMITED = policy(classes=(SHED, SHORT, BATCH), default_class="batch", tenants=(ACME,))
HELLO = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def hello(traffic_class: str | None = None, **arguments: Any) -> Any:
    if traffic_class is not None:
        arguments["headway_class"] = traffic_class
    return {**HELLO, "vllm_xargs": arguments} if arguments else HELLO


def app_with_keys(*keys: str) -> Any:
    return SimpleNamespace(state=SimpleNamespace(args=SimpleNamespace(api_key=list(keys))))


class Watch:
    """A policy that is there without a file."""

    def __init__(self) -> None:
        self.policy: Policy | None = None

    def refresh(self) -> bool:
        return False


@dataclass
class World:
    """A door between a client and an engine."""

    run_dir: Path
    engine: Engine
    door: Door
    watch: Watch
    board: AdmissionBoardWriter

    def waits(self, wait_s: float, *heavy: str, later_s: float = 0.0) -> None:
        """The engine tells that everybody has to wait, heavy tenants 100 s longer."""
        wait = ClassWait(0, wait_s + 100, wait_s)
        classes = dict.fromkeys(("shed", "short", "batch"), wait)
        self.board.write(Board(time.time() + later_s, 0.0, classes, frozenset(heavy)))

    @property
    def seal(self) -> TenantSeal:
        return TenantSeal.of_run(self.run_dir)


def told(world: World) -> Any:
    """The arguments that the engine got with the only request, but for its fingerprint."""
    (document,) = world.engine.documents
    arguments = document["vllm_xargs"]
    del arguments["headway_fingerprint"]
    return arguments
