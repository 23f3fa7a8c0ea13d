"""What is measured: named workloads relative to the capacity bound.

The capacity bound is the request rate at which offered tokens/s equal the engine's measured
maximum::

    bound [requests/s] = capacity [tokens/s] / mean (prompt + output) tokens of a request

The capacity is an input: total tokens/s (prompt and output) that stock vLLM with a large token
budget reaches with this mix while it is offered more than that (``window_tokens_per_s`` at a load
of 1.4), whatever becomes of objectives. A scenario's load is a share of this bound. Mixes differ in
capacity, so that each is tried at the same share of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headway_runtime.bench import mixes, traces
from headway_runtime.bench.mixes import Mix
from headway_runtime.bench.traces import TraceRow
from headway_runtime.bench.workload import (
    Workload,
    mean_tokens_per_request,
    mixed_workload,
    offline_workload,
)

MAX_TRACE_TOKENS = 32_768
OFFLINE_REQUESTS = 600

DECISIVE_LOAD = 0.9
"""Below, most settings keep most promises; above, backlogs grow."""


@dataclass(frozen=True)
class Offer:
    """What a scenario is made to measure on one engine.

    Attributes:
        seed: equal seeds give equal requests.
        capacity_tokens_per_s: see the module.
        duration_s: arrival window; None takes the scenario's own.
        traces: directory of the public traces; None where there is none.
    """

    seed: int
    capacity_tokens_per_s: float
    duration_s: float | None = None
    traces: Path | None = None


@dataclass(frozen=True)
class Trace:
    """A public trace as a source of requests.

    Attributes:
        file: its file's name.
        read: its reader.
    """

    file: str
    read: Callable[[Path], list[TraceRow]]


Maker = Callable[[Offer, float, float], Workload]
"""Makes a workload of a load and an arrival window in seconds."""


@dataclass(frozen=True)
class Scenario:
    """One workload at one load.

    Attributes:
        name: unique.
        family: scenarios that differ in their load alone have one family.
        load: share of the capacity bound; None has all requests there at the start.
        duration_s: arrival window.
        source: its requests; or what makes them, of a load and an arrival window.
        kv_blocks: the engine must be started with so few KV blocks; None with all that fit.
    """

    name: str
    family: str
    load: float | None
    duration_s: float
    source: Mix | Trace | Maker
    kv_blocks: int | None = None

    def workload(self, offer: Offer) -> Workload:
        """Its requests.

        Raises:
            ValueError: it is made from a trace and no directory is given.
            OSError: the trace cannot be read.
        """
        duration_s = offer.duration_s or self.duration_s
        if isinstance(self.source, Trace):
            rows = traces.fitting(self._rows(self.source, offer), MAX_TRACE_TOKENS)
            rate_per_s = self._rate(offer, traces.mean_tokens(rows))
            return traces.trace_workload(
                rows, mixes.INTERACTIVE, rate_per_s, duration_s, offer.seed
            )
        if callable(self.source):
            return self.source(offer, self.load or 1.0, duration_s)
        if self.load is None:
            return offline_workload(self.source, OFFLINE_REQUESTS, offer.seed)
        rate_per_s = self._rate(offer, mean_tokens_per_request(self.source))
        return mixed_workload(self.source, rate_per_s, duration_s, offer.seed)

    def _rate(self, offer: Offer, mean_tokens: float) -> float:
        return (self.load or 1.0) * offer.capacity_tokens_per_s / mean_tokens

    def _rows(self, trace: Trace, offer: Offer) -> list[TraceRow]:
        if offer.traces is None:
            raise ValueError(f"scenario {self.name}: needs the directory of the public traces")
        return trace.read(offer.traces / trace.file)


_MOONCAKE = Trace("mooncake_fast25_conversation.jsonl", traces.read_mooncake)
_AZURE_CHAT = Trace("azure_llm_2023_conv.csv", traces.read_azure)
_AZURE_CODE = Trace("azure_llm_2023_code.csv", traces.read_azure)

KV_PRESSURE_BLOCKS = 10_000
"""160,000 tokens at 16 a block: some 40 batch requests of the scenario."""

SCENARIOS: tuple[Scenario, ...] = (
    Scenario("load-10", "standard", 0.1, 60, mixes.standard()),
    Scenario("load-30", "standard", 0.3, 60, mixes.standard()),
    Scenario("load-50", "standard", 0.5, 60, mixes.standard()),
    Scenario("load-70", "standard", 0.7, 60, mixes.standard()),
    Scenario("load-90", "standard", 0.9, 180, mixes.standard()),
    Scenario("burst-140", "burst", 1.4, 30, mixes.standard()),
    *(
        Scenario(name, name, DECISIVE_LOAD, 60, source)
        for name, source in (
            ("tpot-15", mixes.with_tpot(15)),
            ("tpot-100", mixes.with_tpot(100)),
            ("tpot-three", mixes.three_tpots()),
            ("prompts-short", mixes.short_prompts()),
            ("prompts-long", mixes.long_prompts()),
            ("batch-0", mixes.with_batch_share(0)),
            ("batch-50", mixes.with_batch_share(0.5)),
            ("batch-90", mixes.with_batch_share(0.9)),
            ("prefixes", _MOONCAKE),
            ("azure-chat", _AZURE_CHAT),
            ("azure-code", _AZURE_CODE),
        )
    ),
    Scenario("kv-pressure", "kv-pressure", 1.4, 30, mixes.large_contexts(), KV_PRESSURE_BLOCKS),
    Scenario("offline", "offline", None, 0, mixes.without_objectives()),
)
