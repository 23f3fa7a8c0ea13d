"""What is offered: public traces with their own arrival times, on engines slowed for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from headway_runtime.bench.traces import TraceRow, fitting, read_azure, read_mooncake
from headway_runtime.executors.simulated.request import Arrival
from headway_runtime.executors.simulated.step_time import GpuStepTime
from headway_runtime.policy import TrafficClass

CLASS_NAME = "trace"
MAX_TOKENS = 32_768
"""Longer requests are left out, as in the other benchmarks."""

SPREAD_SECONDS = 10.0
"""Copies of a request, where each comes many times, come within so many seconds: bursts of a minute
stay what they are, and are no smoother than a thousand times as many users would make them."""


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
        times: each request comes so many times, spread at random over SPREAD_SECONDS; of a part of
            one, this share of requests does.
        grows: factor by which that grows until the end, by the same share each second.
        most_pods: that whoever decides may have.
        is_fluid: its engines are queues instead of going step by step.
    """

    name: str
    file: str
    read: Callable[[Path], list[TraceRow]]
    slower: float
    ttft_ms: int
    tpot_ms: int
    minutes: tuple[int, int]
    recorded_s: float = 0.0
    times: float = 1
    grows: float = 1
    most_pods: int = 20
    is_fluid: bool = False

    @property
    def duration_s(self) -> float:
        """Length of the arrival window."""
        return 60.0 * (self.minutes[1] - self.minutes[0])

    @property
    def _spread_s(self) -> float:
        return self.recorded_s if self.times == 1 else max(self.recorded_s, SPREAD_SECONDS)

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
                _arrival(each, each.arrival_s - begin_s + self._spread_s * chance.random())
                for each in rows
                if 0 <= each.arrival_s - begin_s < self.duration_s
                for _ in range(self._copies(each.arrival_s - begin_s, chance))
            ),
            key=lambda each: each.at,
        )

    def _copies(self, at_s: float, chance: Random) -> int:
        copies: float = self.times * self.grows ** (at_s / self.duration_s)
        whole = int(copies)
        return whole + (copies > whole and chance.random() < copies - whole)


def _arrival(row: TraceRow, at_s: float) -> Arrival:
    return Arrival(at_s, CLASS_NAME, max(1, row.prompt_tokens), max(1, row.output_tokens))


_CONVERSATION = Case(
    "azure-conversation",
    "azure_llm_2023_conv.csv",
    read_azure,
    slower=10,
    ttft_ms=4000,
    tpot_ms=200,
    minutes=(16, 38),
)
_CODE = Case(
    "azure-code",
    "azure_llm_2023_code.csv",
    read_azure,
    slower=5,
    ttft_ms=4000,
    tpot_ms=200,
    minutes=(0, 40),
)
_MOONCAKE = Case(
    "mooncake-conversation",
    "mooncake_fast25_conversation.jsonl",
    read_mooncake,
    slower=3,
    ttft_ms=8000,
    tpot_ms=100,
    minutes=(0, 15),
    recorded_s=3.0,
)

SEEN = tuple(replace(case, is_fluid=True) for case in (_CONVERSATION, _CODE, _MOONCAKE))
"""The rules were chosen while looking at these, the last ones with engines that are queues."""

HELD_OUT = (
    replace(_CONVERSATION, name="azure-conversation-later", minutes=(38, 58)),
    replace(_CODE, name="azure-code-later", minutes=(40, 57)),
    replace(_MOONCAKE, name="mooncake-conversation-later", minutes=(15, 25)),
    replace(
        _MOONCAKE,
        name="mooncake-synthetic",
        file="mooncake_fast25_synthetic.jsonl",
        minutes=(0, 15),
        recorded_s=0.0,
    ),
)
"""No number was chosen by how these came out; two rules were given up for how they did here."""

MOST_PODS = 1000
"""``scaling.maxReplicas`` is no more than that."""

SCALED = (
    *(
        replace(case, name=f"{case.name}-x{times}", times=times, most_pods=most_pods, is_fluid=True)
        for case, times, most_pods in (
            *((case, 10, 200) for case in SEEN),
            (_MOONCAKE, 105, MOST_PODS),
        )
    ),
    replace(
        _CONVERSATION,
        name="growth-to-1000",
        times=0.3,
        grows=1000,
        most_pods=MOST_PODS,
        is_fluid=True,
    ),
)
"""With so many users that some 1,000 pods are needed at most; the last grows a thousandfold."""
