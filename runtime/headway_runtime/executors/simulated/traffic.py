"""Traffic that is made up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from random import Random

from headway_runtime.executors.simulated.request import Arrival


@dataclass(frozen=True)
class Traffic:
    """Requests of one class that come independently of each other (a Poisson process).

    Attributes:
        class_name: their class.
        per_second: requests a second.
        prompt_tokens: median length of prompts.
        output_tokens: median length of outputs.
        spread: standard deviation of the logarithms of both lengths; 0 makes all alike.
    """

    class_name: str
    per_second: float
    prompt_tokens: int
    output_tokens: int
    spread: float = 0.5

    def arrivals(self, random: Random, begin_s: float, end_s: float) -> Iterator[Arrival]:
        """Arrivals between two times, in order."""
        at = begin_s
        while self.per_second > 0:
            at += random.expovariate(self.per_second)
            if at >= end_s:
                return
            prompt = self._length(random, self.prompt_tokens)
            output = self._length(random, self.output_tokens)
            yield Arrival(at, self.class_name, prompt, output)

    def _length(self, random: Random, median: int) -> int:
        return max(1, round(random.lognormvariate(math.log(median), self.spread)))


def mixed(
    traffic: Sequence[Traffic], random: Random, begin_s: float, end_s: float
) -> Iterator[Arrival]:
    """Arrivals of several classes, in order of time.

    Each class has chance of its own, so that a change of one leaves the others' requests alike.
    """
    streams = [
        each.arrivals(Random(random.random()), begin_s, end_s)  # noqa: S311 - no secret
        for each in traffic
    ]
    return merge(*streams, key=lambda arrival: arrival.at)
