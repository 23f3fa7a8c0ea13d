"""Workloads: seeded lists of requests, each with the time at which it is sent.

The loop is open: no request waits for an answer to another one. Inside a program it is closed: a
call is sent when those it needs have been answered.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headway_runtime.bench.lengths import Lengths
from headway_runtime.policy import Tenant, TrafficClass
from headway_runtime.scheduling.origin import Call, Origin

_ALMOST_ONE = 1 - 1e-12


@dataclass(frozen=True)
class Request:
    """One request of a workload.

    Attributes:
        arrival_s: when it is sent, in seconds after the start; of a request that waits for others,
            the earliest time.
        class_name: its traffic class.
        prompt_tokens: length of its prompt.
        output_tokens: tokens that it asks for, and gets unless it fails.
        tokens_seed: what the tokens of its prompt are drawn from.
        prefix_blocks: prompts that begin with the same ids begin with the same tokens, 512 for
            each id; empty for a prompt that shares nothing.
        tenant: who sends it; empty where nobody is told apart.
        program: the program that it is a part of, whatever it declares; empty for none.
        call: what it declares of its place in a program.
        after: indexes in the workload of requests before it that it waits for: it is sent when all
            of them are complete, and never when one of them fails.
        delay_s: so much later, in which its client thinks or runs a tool.
    """

    arrival_s: float
    class_name: str
    prompt_tokens: int
    output_tokens: int
    tokens_seed: int
    prefix_blocks: tuple[int, ...] = ()
    tenant: str = ""
    program: str = ""
    call: Call | None = None
    after: tuple[int, ...] = ()
    delay_s: float = 0.0

    @property
    def origin(self) -> Origin:
        """Where it says that it comes from."""
        return Origin(self.tenant, self.call)


@dataclass(frozen=True)
class Stream:
    """Requests of one class in a mix.

    Attributes:
        traffic_class: their class, with its objectives.
        share: share of the mix's requests that are of this class.
        prompts: lengths of their prompts.
        outputs: lengths of their outputs.
    """

    traffic_class: TrafficClass
    share: float
    prompts: Lengths
    outputs: Lengths

    def mean_tokens(self) -> float:
        """Prompt and output tokens of a request, on average."""
        return self.prompts.mean() + self.outputs.mean()


@dataclass(frozen=True)
class Workload:
    """What is offered in one run.

    Attributes:
        classes: the classes of its requests.
        requests: in order of arrival.
        duration_s: length of the arrival window; requests that are open at its end are waited for.
        tenants: who sends them, with their weights; empty where nobody is told apart.
    """

    classes: tuple[TrafficClass, ...]
    requests: tuple[Request, ...]
    duration_s: float
    tenants: tuple[Tenant, ...] = ()

    @property
    def tokens(self) -> int:
        """Prompt and output tokens of all requests."""
        return sum(each.prompt_tokens + each.output_tokens for each in self.requests)


def generator(*seed: int | str) -> random.Random:
    """A source of randomness of its own for each seed."""
    return random.Random(repr(seed))  # noqa: S311 - nothing secret is drawn from it


def mean_tokens_per_request(mix: Sequence[Stream]) -> float:
    """Prompt and output tokens of a request of this mix, on average."""
    shares = sum(each.share for each in mix)
    return sum(each.share * each.mean_tokens() for each in mix) / shares


def poisson_arrivals(rate_per_s: float, duration_s: float, rng: random.Random) -> Iterator[float]:
    """Times in ``[0, duration_s)`` with independent exponential gaps of mean ``1 / rate_per_s``."""
    now_s = rng.expovariate(rate_per_s)
    while now_s < duration_s:
        yield now_s
        now_s += rng.expovariate(rate_per_s)


def mixed_workload(
    mix: Sequence[Stream], rate_per_s: float, duration_s: float, seed: int
) -> Workload:
    """Poisson arrivals of a mix of classes.

    Args:
        mix: the classes; each request is of one of them at random, by their shares.
        rate_per_s: requests a second, all classes together.
        duration_s: length of the arrival window.
        seed: equal seeds give equal workloads.
    """
    rng = generator(seed)
    arrivals = list(poisson_arrivals(rate_per_s, duration_s, rng))
    return _workload(mix, arrivals, duration_s, rng)


def offline_workload(mix: Sequence[Stream], requests: int, seed: int) -> Workload:
    """So many requests of a mix, all there at the start: what an engine can do at most."""
    return _workload(mix, [0.0] * requests, 0.0, generator(seed))


def _workload(
    mix: Sequence[Stream], arrivals: Sequence[float], duration_s: float, rng: random.Random
) -> Workload:
    shares = [each.share for each in mix]
    streams = rng.choices(mix, weights=shares, k=len(arrivals))
    return Workload(
        # Streams may share a class, and no policy may name one twice.
        classes=tuple(dict.fromkeys(each.traffic_class for each in mix)),
        requests=tuple(
            Request(
                arrival_s=arrival_s,
                class_name=stream.traffic_class.name,
                prompt_tokens=stream.prompts.at(quantile(rng)),
                output_tokens=stream.outputs.at(quantile(rng)),
                tokens_seed=rng.getrandbits(48),
            )
            for arrival_s, stream in zip(arrivals, streams, strict=True)
        ),
        duration_s=duration_s,
    )


def quantile(rng: random.Random) -> float:
    """A quantile at random; never 0 or 1, which of a lognormal distribution are no numbers."""
    return min(max(rng.random(), 1e-12), _ALMOST_ONE)
