"""The mixed workload that arms are compared on: chat with promises, batch work in between."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from random import Random

from headway_runtime.executors.simulated.arms import BATCH, CHAT
from headway_runtime.executors.simulated.request import Arrival
from headway_runtime.policy import TrafficClass

_LEAST_TOKENS = 4
_MOST_PROMPT_TOKENS = 8000
_MOST_OUTPUT_TOKENS = 500
"""A single long answer would decide how long a run takes."""


@dataclass(frozen=True)
class Workload:
    """Requests of two classes that come independently of each other.

    Attributes:
        chat_per_second: chat requests a second.
        batch_per_second: batch requests a second.
        seconds: how long they come.
        chat_prompt: median length of chat prompts (lognormal).
        chat_output: median length of chat outputs (lognormal).
        batch_prompt: least and greatest length of batch prompts (uniform).
        batch_output: length of batch outputs.
        prompt_spread: standard deviation of the logarithm of chat prompts' lengths.
        output_spread: the same of chat outputs.
        long_share: share of chat requests with prompts of ``long_prompt`` tokens.
        long_prompt: length of those.
        cached_share: share of a chat prompt that is in the prefix cache.
        ttft_ms: promised to chat.
        tpot_ms: promised to chat.
        tight_share: share of chat requests that are promised ``tight_tpot_ms``, as a class of their
            own.
        tight_tpot_ms: promised to those.
        deadline_s: promised to batch; None promises none.
    """

    chat_per_second: float
    batch_per_second: float
    seconds: float = 30.0
    chat_prompt: int = 490
    chat_output: int = 134
    batch_prompt: tuple[int, int] = (2000, 8000)
    batch_output: int = 200
    prompt_spread: float = 0.78
    output_spread: float = 0.55
    long_share: float = 0.0
    long_prompt: int = 32_000
    cached_share: float = 0.0
    ttft_ms: int = 1000
    tpot_ms: int = 30
    tight_share: float = 0.0
    tight_tpot_ms: int = 15
    deadline_s: int | None = 60

    @property
    def classes(self) -> tuple[TrafficClass, ...]:
        """The classes and what they are promised."""
        tight = TrafficClass(f"{CHAT}-tight", self.ttft_ms, self.tight_tpot_ms)
        return (
            TrafficClass(CHAT, self.ttft_ms, self.tpot_ms),
            *((tight,) if self.tight_share else ()),
            TrafficClass(BATCH, deadline_s=self.deadline_s),
        )

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        """Arrivals in order of time; the same for the same seed."""
        chance = Random(seed)  # noqa: S311 - no secret
        chat, batch = Random(chance.random()), Random(chance.random())  # noqa: S311 - no secret
        return merge(self._chat(chat), self._batch(batch), key=lambda each: each.at)

    def _chat(self, random: Random) -> Iterator[Arrival]:
        for at in _times(random, self.chat_per_second, self.seconds):
            prompt = _lognormal(random, self.chat_prompt, self.prompt_spread, _MOST_PROMPT_TOKENS)
            output = _lognormal(random, self.chat_output, self.output_spread, _MOST_OUTPUT_TOKENS)
            is_long, is_tight = random.random(), random.random()
            if is_long < self.long_share:
                prompt = self.long_prompt
            name = f"{CHAT}-tight" if is_tight < self.tight_share else CHAT
            yield Arrival(at, name, prompt, output, int(self.cached_share * prompt))

    def _batch(self, random: Random) -> Iterator[Arrival]:
        for at in _times(random, self.batch_per_second, self.seconds):
            yield Arrival(at, BATCH, random.randint(*self.batch_prompt), self.batch_output)


def _times(random: Random, per_second: float, seconds: float) -> Iterator[float]:
    at = 0.0
    while per_second > 0:
        at += random.expovariate(per_second)
        if at >= seconds:
            return
        yield at


def _lognormal(random: Random, median: int, spread: float, most: int) -> int:
    return min(most, max(_LEAST_TOKENS, round(random.lognormvariate(math.log(median), spread))))
