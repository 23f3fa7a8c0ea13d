"""Public request traces, read from a directory that the user names; none is part of this package.

- ``azure_llm_2023_code.csv``, ``azure_llm_2023_conv.csv``: Azure Public Dataset, LLM inference
  traces 2023, CC-BY 4.0; Patel et al., "Splitwise", ISCA 2024. They carry no content, so no
  prompts share a prefix here.
- ``mooncake_fast25_conversation.jsonl``, ``mooncake_fast25_synthetic.jsonl``:
  kvcache-ai/Mooncake, Apache-2.0; Qin et al., "Mooncake", FAST'25. ``hash_ids`` names the prompt's
  512-token blocks: equal ids at the start of two prompts mean an equal prefix.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import cycle, islice
from pathlib import Path
from statistics import fmean

from headway_runtime.bench.workload import Request, Workload, generator, poisson_arrivals
from headway_runtime.policy import TrafficClass

PREFIX_BLOCK_TOKENS = 512
"""Tokens that one id of ``hash_ids`` stands for."""

_MICROSECOND_DIGITS = 26


@dataclass(frozen=True)
class TraceRow:
    """One request of a trace.

    Attributes:
        arrival_s: seconds after the trace's first request.
        prompt_tokens: length of its prompt.
        output_tokens: length of its output.
        prefix_blocks: ids of its prompt's blocks, empty where the trace has none.
    """

    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    prefix_blocks: tuple[int, ...] = ()


def read_azure(path: Path) -> list[TraceRow]:
    """Read one of the Azure traces.

    Raises:
        OSError: the file cannot be read.
        KeyError, ValueError: it is no such trace.
    """
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    # The traces have seven digits of a second, datetime reads six.
    times = [datetime.fromisoformat(row["TIMESTAMP"][:_MICROSECOND_DIGITS]) for row in rows]
    return [
        TraceRow(
            arrival_s=(time - times[0]).total_seconds(),
            prompt_tokens=int(row["ContextTokens"]),
            output_tokens=int(row["GeneratedTokens"]),
        )
        for time, row in zip(times, rows, strict=True)
    ]


def read_mooncake(path: Path) -> list[TraceRow]:
    """Read one of the Mooncake traces.

    Raises:
        OSError: the file cannot be read.
        KeyError, ValueError: it is no such trace.
    """
    with path.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    first_ms = rows[0]["timestamp"] if rows else 0
    return [
        TraceRow(
            arrival_s=(row["timestamp"] - first_ms) / 1000,
            prompt_tokens=row["input_length"],
            output_tokens=row["output_length"],
            prefix_blocks=tuple(row["hash_ids"]),
        )
        for row in rows
    ]


def fitting(rows: Sequence[TraceRow], max_tokens: int) -> list[TraceRow]:
    """Rows whose prompt and output together are no longer than this."""
    return [each for each in rows if each.prompt_tokens + each.output_tokens <= max_tokens]


def mean_tokens(rows: Sequence[TraceRow]) -> float:
    """Prompt and output tokens of a request, on average."""
    return fmean(each.prompt_tokens + each.output_tokens for each in rows)


def trace_workload(
    rows: Sequence[TraceRow],
    traffic_class: TrafficClass,
    rate_per_s: float,
    duration_s: float,
    seed: int,
) -> Workload:
    """A stretch of a trace at another rate: its lengths and prefixes in its order.

    Arrivals are Poisson: the traces' own times belong to another capacity, and Mooncake's are
    quantised to 3 s.

    Args:
        rows: the trace.
        traffic_class: the class of all its requests.
        rate_per_s: requests a second.
        duration_s: length of the arrival window.
        seed: where in the trace it starts, and when requests arrive.
    """
    rng = generator(seed)
    start = rng.randrange(len(rows))
    from_start = islice(cycle(rows), start, None)
    arrivals = poisson_arrivals(rate_per_s, duration_s, rng)
    requests = tuple(
        Request(
            arrival_s=arrival_s,
            class_name=traffic_class.name,
            prompt_tokens=max(1, row.prompt_tokens),
            output_tokens=max(1, row.output_tokens),
            tokens_seed=start + index,
            prefix_blocks=row.prefix_blocks,
        )
        for index, (arrival_s, row) in enumerate(zip(arrivals, from_start, strict=False))
    )
    return Workload((traffic_class,), requests, duration_s)
