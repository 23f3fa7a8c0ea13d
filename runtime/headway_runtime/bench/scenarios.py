"""What is measured: named workloads relative to the capacity bound.

The capacity bound is the request rate at which offered tokens/s equal the engine's measured
maximum::

    bound [requests/s] = capacity [tokens/s] / mean (prompt + output) tokens of a request

The capacity is an input: total tokens/s (prompt and output) that stock vLLM with a large token
budget reaches with this mix while it is offered more than that, whatever becomes of objectives. The
scenarios of family ``capacity`` measure it, see :func:`measured_capacities`. A scenario's load is a
share of this bound. Mixes differ in capacity, so that each is tried at the same share of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

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

STANDARD = "standard"
CAPACITY = "capacity"
CAPACITY_ARM = "stock-8192-fcfs"
_CAPACITY_LOAD = 1.5
_CAPACITY_S = 60
"""Some lives of a request under overload, so that ramp and end weigh little."""


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
        mix: scenarios that offer the same tokens, whatever their objectives, have one capacity.
    """

    name: str
    family: str
    load: float | None
    duration_s: float
    source: Mix | Trace | Maker
    kv_blocks: int | None = None
    mix: str = STANDARD

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

_MIXES: tuple[tuple[str, Mix | Trace], ...] = (
    ("prompts-short", mixes.short_prompts()),
    ("prompts-long", mixes.long_prompts()),
    ("batch-0", mixes.with_batch_share(0)),
    ("batch-50", mixes.with_batch_share(0.5)),
    ("batch-90", mixes.with_batch_share(0.9)),
    ("prefixes", _MOONCAKE),
    ("azure-chat", _AZURE_CHAT),
    ("azure-code", _AZURE_CODE),
)
"""Each with a capacity of its own."""

SCENARIOS: tuple[Scenario, ...] = (
    Scenario("load-10", STANDARD, 0.1, 60, mixes.standard()),
    Scenario("load-30", STANDARD, 0.3, 60, mixes.standard()),
    Scenario("load-50", STANDARD, 0.5, 60, mixes.standard()),
    Scenario("load-70", STANDARD, 0.7, 60, mixes.standard()),
    Scenario("load-90", STANDARD, 0.9, 180, mixes.standard()),
    Scenario("burst-140", "burst", 1.4, 30, mixes.standard()),
    Scenario("tpot-15", "tpot-15", DECISIVE_LOAD, 60, mixes.with_tpot(15)),
    Scenario("tpot-100", "tpot-100", DECISIVE_LOAD, 60, mixes.with_tpot(100)),
    Scenario("tpot-three", "tpot-three", DECISIVE_LOAD, 60, mixes.three_tpots()),
    *(Scenario(name, name, DECISIVE_LOAD, 60, source, mix=name) for name, source in _MIXES),
    Scenario(
        *("kv-pressure", "kv-pressure", 1.4, 30, mixes.large_contexts(), KV_PRESSURE_BLOCKS),
        mix="kv-pressure",
    ),
    Scenario("offline", "offline", None, 0, mixes.without_objectives()),
)


def _measuring(mix: str, source: Mix | Trace, kv_blocks: int | None = None) -> Scenario:
    name = f"{CAPACITY}-{mix}"
    return Scenario(name, CAPACITY, _CAPACITY_LOAD, _CAPACITY_S, source, kv_blocks, mix)


CAPACITY_SCENARIOS: tuple[Scenario, ...] = (
    _measuring(STANDARD, mixes.standard()),
    *(_measuring(name, source) for name, source in _MIXES),
    _measuring("kv-pressure", mixes.large_contexts(), KV_PRESSURE_BLOCKS),
)
"""Each mix at more than an engine can do, of which a guess is enough."""


def measured_capacities(results: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Capacities that runs of :data:`CAPACITY_SCENARIOS` have shown.

    Args:
        results: see :func:`headway_runtime.bench.measure.result_of`; other runs are passed over.

    Returns:
        Tokens/s by mix, ramp and end left out; the mean of several runs.

    Raises:
        ValueError: they were measured on several models.
    """
    measured = [
        each for each in results if each["family"] == CAPACITY and each["arm"] == CAPACITY_ARM
    ]
    if len(shapes := sorted({each["shape"] for each in measured})) > 1:
        raise ValueError(f"capacities of several models: {', '.join(shapes)}")
    values: dict[str, list[float]] = defaultdict(list)
    for each in measured:
        mix = each["scenario"].removeprefix(f"{CAPACITY}-")
        values[mix].append(each["summary"]["middle_tokens_per_s"])
    return {mix: fmean(of_mix) for mix, of_mix in values.items()}
