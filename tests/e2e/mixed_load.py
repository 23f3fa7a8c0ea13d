"""Interactive and batch requests side by side, and what the operator makes of them, live."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from tests.e2e.load import PROMPTS, Load
from tests.e2e.prometheus import Prometheus
from tests.e2e.service import Service

MODEL = "smollm2"
INTERACTIVE, BATCH = "interactive", "batch"
_LONG_PROMPTS = tuple(
    f"Summarise in one word, report {n}: " + " ".join(PROMPTS * 12) for n in range(4)
)
_PERIOD_S = 2.0
_LIMITS = ("Retuned", "TargetOutOfReach", "PolicyApplied")
_WINDOW = "20s"

_COLUMNS = ("s", "theta", "budget", "batch", "wanted", "running", "waiting", "util", "KV")
_CLASS_COLUMNS = ("attained", "TPOT/target")


@dataclass(frozen=True)
class View:
    """One service in Prometheus."""

    prometheus: Prometheus
    namespace: str
    name: str

    def value(self, metric: str) -> float | None:
        """A metric of the service's pods, averaged."""
        return self._told(f"avg({metric}{self._selector()})")

    def attainment(self, traffic_class: str) -> float | None:
        """Share of a class's requests inside its objectives, of those that ended lately."""
        selector = self._selector(f'class="{traffic_class}"')
        ended, attained = (
            f"sum(increase(headway_class_{kind}_total{selector}[{_WINDOW}]))"
            for kind in ("requests", "attained_requests")
        )
        return self._told(f"{attained} / ({ended} > 0)")

    def tpot_ratio(self, traffic_class: str) -> float | None:
        """The 95th percentile of the class's time per output token, in parts of its target."""
        selector = self._selector(f'class="{traffic_class}"')
        return self._told(f"max(headway_class_recent_tpot_ratio{selector})")

    def _told(self, text: str) -> float | None:
        """None, too, where Prometheus does not answer: what is shown goes on without it."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.prometheus.value(text)
        return None

    def _selector(self, more: str = "") -> str:
        own = f'namespace="{self.namespace}",headway_service="{self.name}"'
        return "{" + ",".join(filter(None, (own, more))) + "}"


@dataclass(frozen=True)
class Scene:
    """A part of what is shown.

    Attributes:
        seconds: how long it takes.
        change: what is changed in the spec first; None leaves it.
        text: what there is to see.
    """

    seconds: float
    change: Mapping[str, Any] | None = None
    text: str = ""


async def show(service: Service, base_url: str, *scenes: Scene) -> list[Load]:
    """Offer the load and print a line every two seconds of what Prometheus has of it.

    What the operator says of the service meanwhile stands between the lines.

    Returns the loads, with the outcome of every request.
    """
    view = View(Prometheus(), service.namespace, service.name)
    interactive = Load(base_url, MODEL, streams=4, max_tokens=48, traffic_class=INTERACTIVE)
    batch = Load(
        base_url, MODEL, streams=6, max_tokens=8, traffic_class=BATCH, prompts=_LONG_PROMPTS
    )
    print("    4 interactive streams of short prompts, 6 batch streams of long ones", flush=True)
    names = [*_COLUMNS, *_class_columns(INTERACTIVE), *_class_columns(BATCH)[:1]]
    print("    " + " ".join(f"{name:>{_width(name)}}" for name in names), flush=True)
    began = time.monotonic()
    said = set(await asyncio.to_thread(_said, service))
    async with AsyncExitStack() as loads:
        for load in (interactive, batch):
            await loads.enter_async_context(load)
        for scene in scenes:
            if scene.text:
                print(f"    {scene.text}", flush=True)
            if scene.change is not None:
                await asyncio.to_thread(service.patch, {"spec": scene.change})
            ends_s = time.monotonic() + scene.seconds
            while time.monotonic() < ends_s:
                await asyncio.sleep(_PERIOD_S)
                row = await asyncio.to_thread(_row, view, time.monotonic() - began)
                cells = (f"{text:>{_width(name)}}" for text, name in zip(row, names, strict=True))
                print("    " + " ".join(cells), flush=True)
                for text in await asyncio.to_thread(_said, service):
                    if text not in said:
                        said.add(text)
                        print(f"      event {text}", flush=True)
    for load, name in ((interactive, INTERACTIVE), (batch, BATCH)):
        print(f"    {name}: {len(load.outcomes)} requests, {len(load.failed())} failed", flush=True)
    return [interactive, batch]


def _said(service: Service) -> list[str]:
    """What the operator has said of the service's limits, oldest first."""
    events = service.cluster.list("events", service.namespace)
    return [
        f"{each['reason']}: {each['message']}"
        for each in sorted(events, key=lambda each: str(each["metadata"]["creationTimestamp"]))
        if each["reason"] in _LIMITS
    ]


def _class_columns(traffic_class: str) -> list[str]:
    return [f"{traffic_class[:5]} {each}" for each in _CLASS_COLUMNS]


def _width(name: str) -> int:
    return max(7, len(name))


def _row(view: View, elapsed_s: float) -> list[str]:
    budget = view.value("headway_token_budget_tokens")
    wanted = view.value("headway_policy_token_budget_tokens")
    return [
        f"{elapsed_s:.0f}",
        _number(view.value("headway_theta_ratio"), 2),
        _number(budget),
        _number(view.value("headway_max_batch_requests")),
        _number(wanted),
        _number(view.value("headway_running_requests")),
        _number(view.value("headway_waiting_requests")),
        _percent(view.value("headway_utilisation_ratio")),
        _percent(view.value("headway_kv_cache_usage_ratio")),
        _percent(view.attainment(INTERACTIVE)),
        _number(view.tpot_ratio(INTERACTIVE), 2),
        _percent(view.attainment(BATCH)),
    ]


def _number(value: float | None, digits: int = 0) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
