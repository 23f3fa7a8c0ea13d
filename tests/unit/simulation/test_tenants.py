"""Tenants share a simulated engine: by weight while they wait, whatever they call urgent."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from headway_runtime.executors.simulated.engine import SimulatedEngine
from headway_runtime.executors.simulated.kv_blocks import KvBlocks
from headway_runtime.executors.simulated.pipeline import Launched
from headway_runtime.executors.simulated.request import Arrival, Request
from headway_runtime.executors.simulated.step_time import GpuStepTime
from headway_runtime.policy import Policy, Scope, Stamp, Tenant, TrafficClass
from headway_runtime.scheduling.admission.refusal import Refusal
from headway_runtime.scheduling.origin import Origin
from headway_runtime.scheduling.view import Limits

CHAT = TrafficClass("chat", ttft_ms=1_000, tpot_ms=30)
BATCH = TrafficClass("batch", deadline_s=600)
END_S = 12.0


class Served:
    """Weighted tokens of each tenant, from a time on, and when requests got their first token."""

    def __init__(self, since_s: float) -> None:
        self.tokens: Counter[str] = Counter()
        self.first_s: dict[Arrival, float] = {}
        self._since_s = since_s

    def received(self, request: Request) -> None:
        """Not looked at."""

    def refused(self, arrival: Arrival, number: int, refusal: Refusal) -> None:
        """Not looked at."""

    def launched(self, launched: Launched, waiting: int) -> None:
        """Count what is served while all wait."""
        if not waiting or not self._since_s <= launched.scheduled_s < END_S:
            return
        for request, tokens in launched.step.chunks:
            before = request.computed - tokens
            prompt = max(0, min(tokens, request.arrival.prompt_tokens - before))
            self.tokens[request.arrival.origin.tenant] += prompt + 2 * (tokens - prompt)

    def token(self, request: Request, now_s: float) -> None:
        """Remember the first one."""
        self.first_s.setdefault(request.arrival, now_s)


def seeded(seed: int) -> Random:
    """A source of randomness."""
    return Random(seed)  # noqa: S311 - nothing secret is drawn from it


def flood(tenant: str, of: str, a_second: float, prompt: int, rng: Random) -> list[Arrival]:
    """Requests of a tenant until the end."""
    count = int(a_second * END_S)
    return [
        Arrival(
            rng.uniform(0, END_S), of, rng.randint(prompt // 2, 2 * prompt), 60, 0, Origin(tenant)
        )
        for _ in range(count)
    ]


def run(arrivals: list[Arrival], *tenants: Tenant) -> Served:
    engine = SimulatedEngine(Limits(8192, 256), KvBlocks(47_000), GpuStepTime())
    engine.recorder = served = Served(since_s=2.0)
    engine.adopt(Policy(Scope("s"), Stamp(1, 0, 0), classes=(CHAT, BATCH), tenants=tenants))
    for each in sorted(arrivals, key=lambda each: each.at):
        engine.send(each)
    engine.run(END_S)
    return served


def jain(values: list[float]) -> float:
    return sum(values) ** 2 / (len(values) * sum(each * each for each in values))


def test_a_flood_gets_a_share_and_no_more() -> None:
    rng = seeded(1)
    arrivals = flood("heavy", "batch", 60, 1_000, rng)
    for each in ("b", "c", "d"):
        arrivals += flood(each, "batch", 12, 1_000, rng)
    served = run(arrivals)
    assert jain([float(each) for each in served.tokens.values()]) > 0.98
    assert len(served.tokens) == 4


def test_shares_go_by_weight() -> None:
    rng = seeded(2)
    arrivals = [each for name in "abc" for each in flood(name, "batch", 40, 1_000, rng)]
    served = run(arrivals, Tenant("a", 1), Tenant("b", 2), Tenant("c", 4))
    by_weight = [served.tokens["a"], served.tokens["b"] / 2, served.tokens["c"] / 4]
    assert jain(by_weight) > 0.95


def test_calling_everything_urgent_buys_nothing() -> None:
    rng = seeded(3)
    arrivals = [*flood("liar", "chat", 80, 500, rng), *flood("honest", "batch", 20, 1_500, rng)]
    served = run(arrivals)
    assert jain([float(each) for each in served.tokens.values()]) > 0.95


def test_a_small_tenant_keeps_its_ttft_beside_a_flood_of_urgent_requests() -> None:
    rng = seeded(4)
    small = flood("small", "chat", 3, 1_500, rng)
    served = run([*flood("flood", "chat", 140, 300, rng), *small])
    due = [each for each in small if each.at < END_S - 2]
    late = [each for each in due if served.first_s.get(each, 1e9) - each.at > 1.0]
    assert len(late) <= 0.05 * len(due)


@pytest.mark.parametrize("tenants", [1, 40])
def test_everybody_is_served_in_the_end(tenants: int) -> None:
    rng = seeded(5)
    engine = SimulatedEngine(Limits(2048, 16), KvBlocks(2_000), GpuStepTime())
    engine.recorder = served = Served(0.0)
    engine.adopt(Policy(Scope("s"), Stamp(1, 0, 0), classes=(CHAT, BATCH)))
    arrivals = [
        Arrival(0.01 * number, rng.choice(["chat", "batch", ""]), rng.randint(1, 3_000), 8, 0,
                Origin(f"t{number % tenants}"))
        for number in range(200)
    ]  # fmt: skip
    for each in arrivals:
        engine.send(each)
    engine.run_to_the_end(10_000.0)
    assert len(served.first_s) == len(arrivals)
