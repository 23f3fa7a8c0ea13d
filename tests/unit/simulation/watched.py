"""A simulated GPU engine that is watched at every step."""

from __future__ import annotations

from random import Random
from typing import Any

from headway_runtime.executors.simulated.engine import SimulatedEngine
from headway_runtime.executors.simulated.kv_blocks import KvBlocks
from headway_runtime.executors.simulated.pipeline import Launched
from headway_runtime.executors.simulated.request import Arrival, Request
from headway_runtime.executors.simulated.step_time import GpuStepTime
from headway_runtime.policy import Mode, Policy, Scope, Stamp, TrafficClass
from headway_runtime.scheduling.admission.refusal import Refusal
from headway_runtime.scheduling.view import Limits

CHAT = TrafficClass("chat", ttft_ms=1000, tpot_ms=30)
BATCH = TrafficClass("batch")

FLAT = GpuStepTime(
    decode_ms=(10, 0, 0),
    mixed_ms=(20, 0, 0, 0, 0),
    decode_launch_s=0.002,
    graph_launch_s=0.005,
    eager_launch_s=0.030,
)
"""Steps of 10 ms, with prefill of 20 ms; a large one is launched in 30 ms."""


class Watch:
    """Remembers steps and tokens, and checks what must hold at every step."""

    def __init__(self, made: SimulatedEngine, blocks: KvBlocks) -> None:
        self.steps: list[Launched] = []
        self.tokens: dict[str, list[float]] = {}
        self.requests: dict[str, Request] = {}
        self.received_at: dict[str, float] = {}
        self.refusals: dict[int, tuple[Arrival, Refusal]] = {}
        self._made, self._blocks = made, blocks

    def received(self, request: Request) -> None:
        self.received_at[request.request_id] = self._made.now_s

    def refused(self, arrival: Arrival, number: int, refusal: Refusal) -> None:
        self.refusals[number] = (arrival, refusal)

    def launched(self, launched: Launched, waiting: int) -> None:
        assert waiting == len(self._made._waiting)
        self.steps.append(launched)
        assert 0 <= self._blocks.usage <= 1
        held = sum(each.room for each in self._made._batch.running)
        assert held == round(self._blocks.usage * self._blocks._count) * 16
        for request, tokens in launched.step.chunks:
            assert tokens > 0
            assert request.computed <= request.room
            assert request.computed <= request.known + request.under_way <= request.total

        self._check_foresight()

    def _check_foresight(self) -> None:
        """What the planner is told decodes is what decodes."""
        foresight = self._made._foresight
        if foresight is None or self._made._measurements.counts.preemptions:
            return
        decoding = [each for each in self._made._batch.running if each.decodes]
        work = foresight.work(self._made._batch.running, self._made.now_s, None, 0.0)
        assert work.decodes == len(decoding)
        assert work.decode_context == sum(each.computed for each in decoding)
        assert {each.request_id for each in work.prefills} == {
            each.request_id
            for each in self._made._batch.running
            if each.remaining and not each.decodes
        }

    def token(self, request: Request, now_s: float) -> None:
        self.requests[request.request_id] = request
        self.tokens.setdefault(request.request_id, []).append(now_s)


def engine(*sent: Arrival, **given: Any) -> tuple[SimulatedEngine, Watch]:
    blocks = KvBlocks(given.pop("blocks", 1000))
    ceilings = given.pop("ceilings", Limits(8192, 256))
    classes = given.pop("classes", (CHAT, BATCH))
    mode = given.pop("mode", Mode.OFF)
    made = SimulatedEngine(ceilings, blocks, given.pop("step_time", FLAT), **given)
    made.recorder = watch = Watch(made, blocks)
    made.adopt(Policy(Scope("s"), Stamp(1, 0, 0), mode=mode, classes=classes))
    for each in sent:
        made.send(each)
    return made, watch


def ms(times: Any) -> list[float]:
    return [round(1000 * each, 3) for each in times]


def chance(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - no secret
