"""What is offered: public traces with their own arrival times, on engines slowed for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from headway_runtime.bench.traces import TraceRow, fitting, read_azure, read_mooncake
from headway_runtime.executors.simulated.request import Arrival
from headway_runtime.executors.simulated.step_time import GpuStepTime
from headway_runtime.policy import TrafficClass

CLASS_NAME = "trace"
MAX_TOKENS = 32_768
"""Longer requests are left out, as in the other benchmarks."""


@dataclass(frozen=True)
class Case:
    """A trace, the engine it meets and what its requests are promised.

    Attributes:
        name: unique.
        file: of the trace.
        read: its reader.
        slower: factor by which the GPU is slower than one H200 with a model of 8 billion parameters
            in bfloat16. Launching steps, which is the host's work, takes as long as there.
        ttft_ms: promised time to the first token.
        tpot_ms: promised time per output token.
        minutes: the part of the trace that is taken, from the first of these minutes to the last.
        recorded_s: precision of its arrival times; within it they are spread at random.
    """

    name: str
    file: str
    read: Callable[[Path], list[TraceRow]]
    slower: float
    ttft_ms: int
    tpot_ms: int
    minutes: tuple[int, int]
    recorded_s: float = 0.0

    @property
    def duration_s(self) -> float:
        """Length of the arrival window."""
        return 60.0 * (self.minutes[1] - self.minutes[0])

    @property
    def traffic_class(self) -> TrafficClass:
        """The one class of its requests."""
        return TrafficClass(CLASS_NAME, ttft_ms=self.ttft_ms, tpot_ms=self.tpot_ms)

    def timing(self, random: Random | None = None) -> GpuStepTime:
        """How long its engines' steps take."""
        fast = GpuStepTime()
        decode, tokens, context = (self.slower * each for each in fast.decode_ms)
        step, prompt, each_decode, read, pair = (self.slower * each for each in fast.mixed_ms)
        return GpuStepTime(
            decode_ms=(decode, tokens, context),
            mixed_ms=(step, prompt, each_decode, read, pair),
            spread=0.05,
            launch_spread=0.15,
            random=random,
        )

    def arrivals(self, traces: Path, seed: int) -> list[Arrival]:
        """Its requests, in order of arrival. No prompt shares a prefix with another one.

        Args:
            traces: directory of the public traces.
            seed: of when within the precision of the trace they come.

        Raises:
            OSError: the trace cannot be read.
        """
        chance = Random(seed)  # noqa: S311 - no secret
        rows = fitting(self.read(traces / self.file), MAX_TOKENS)
        begin_s = 60.0 * self.minutes[0]
        return sorted(
            (
                _arrival(each, each.arrival_s - begin_s + self.recorded_s * chance.random())
                for each in rows
                if 0 <= each.arrival_s - begin_s < self.duration_s
            ),
            key=lambda each: each.at,
        )


def _arrival(row: TraceRow, at_s: float) -> Arrival:
    return Arrival(at_s, CLASS_NAME, max(1, row.prompt_tokens), max(1, row.output_tokens))


CASES = (
    Case(
        "azure-conversation",
        "azure_llm_2023_conv.csv",
        read_azure,
        slower=10,
        ttft_ms=4000,
        tpot_ms=200,
        minutes=(16, 38),
    ),
    Case(
        "azure-code",
        "azure_llm_2023_code.csv",
        read_azure,
        slower=5,
        ttft_ms=4000,
        tpot_ms=200,
        minutes=(0, 40),
    ),
    Case(
        "mooncake-conversation",
        "mooncake_fast25_conversation.jsonl",
        read_mooncake,
        slower=3,
        ttft_ms=8000,
        tpot_ms=100,
        minutes=(0, 15),
        recorded_s=3.0,
    ),
)
