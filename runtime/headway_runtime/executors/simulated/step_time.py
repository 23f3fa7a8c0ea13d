"""How long a step takes."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import NamedTuple, Protocol

from headway_runtime.executors.simulated.step import Step
from headway_runtime.scheduling.timing.step_shape import StepShape
from headway_runtime.scheduling.timing.step_time_model import DECODE_PRIOR_MS, MIXED_PRIOR_MS


class StepSeconds(NamedTuple):
    """The two parts of a step, in seconds.

    Attributes:
        gpu_s: time on the GPU.
        launch_s: time in which the engine decides and launches it, and does nothing else.
        update_s: time in which the engine takes in its output, likewise.
    """

    gpu_s: float
    launch_s: float
    update_s: float = 0.0


class Timing(Protocol):
    """Tells how long steps take."""

    @property
    def steps_under_way(self) -> int:
        """Most steps that the engine has launched and not looked at; 2 where it schedules ahead."""
        ...

    @property
    def graph_tokens(self) -> int | None:
        """Largest step that runs as a CUDA graph; None where step lengths cannot be told."""
        ...

    def of(self, step: Step) -> StepSeconds:
        """How long this step takes."""
        ...


@dataclass(frozen=True)
class StepTime:
    """A step's length, linear in what it holds; one step after the other, launched in no time.

    The default is of the order of a model of 8 billion parameters on one H200: 5 ms to read the
    weights, some 60,000 tokens a second at most.

    Attributes:
        base_us: of every step.
        token_us: for each token.
        request_us: for each request that has tokens in the step.
        context_token_ns: for each token that those requests had before, whose keys and values
            attention reads.
    """

    base_us: float = 5000.0
    token_us: float = 16.0
    request_us: float = 10.0
    context_token_ns: float = 35.0

    @property
    def steps_under_way(self) -> int:
        """A step is launched when the one before was looked at."""
        return 1

    @property
    def graph_tokens(self) -> int | None:
        """Policies alone limit such an engine's steps."""
        return None

    def seconds(self, tokens: int, requests: int, context_tokens: int) -> float:
        """Length of a step, in seconds."""
        work_us = self.base_us + self.token_us * tokens + self.request_us * requests
        return (work_us + self.context_token_ns * context_tokens / 1000) / 1e6

    def of(self, step: Step) -> StepSeconds:
        """How long this step takes."""
        return StepSeconds(self.seconds(step.tokens, len(step.chunks), step.context_tokens), 0.0)


@dataclass(frozen=True)
class GpuStepTime:
    """A step on a GPU that is launched while the one before runs.

    Its length is linear in its work, apart for steps that only decode; the time to launch it
    depends on whether it is a CUDA graph. The default is a model of 8 billion parameters on one
    H200 in bfloat16.

    Attributes:
        decode_ms: of every step that only decodes, of 64 decodes, of 100,000 tokens before them.
        mixed_ms: of every other step, of 1,000 prompt tokens, of 64 decodes, of 100,000 tokens
            before those, of a million attention pairs.
        graph_tokens: largest step that runs as a CUDA graph.
        decode_launch_s: launch of a step that only decodes.
        graph_launch_s: launch of another step that runs as a CUDA graph.
        eager_launch_s: launch of a step that does not.
        decide_request_s: time to decide a step and prepare its launch, for each request in it.
        update_request_s: time to take in its output, for each request in it.
        spread: standard deviation of the logarithm of the time on the GPU.
        launch_spread: the same of the time to launch.
        random: where that chance comes from; None for no chance.
        schedules_ahead: the next step is launched while one runs.
    """

    decode_ms: tuple[float, float, float] = DECODE_PRIOR_MS
    mixed_ms: tuple[float, float, float, float, float] = MIXED_PRIOR_MS
    graph_tokens: int = 512
    decode_launch_s: float = 0.003
    graph_launch_s: float = 0.012
    eager_launch_s: float = 0.030
    decide_request_s: float = 0.0
    update_request_s: float = 0.0
    spread: float = 0.0
    launch_spread: float = 0.0
    random: Random | None = None
    schedules_ahead: bool = True

    @property
    def steps_under_way(self) -> int:
        """Most steps that were launched and not looked at."""
        return 2 if self.schedules_ahead else 1

    def gpu_s(self, shape: StepShape) -> float:
        """Time on the GPU without chance, in seconds."""
        decodes, context = shape.decodes / 64, shape.decode_context / 1e5
        if not shape.prefill_tokens:
            step, each, read = self.decode_ms
            return (step + each * decodes + read * context) / 1e3
        step, prompt, each, read, pair = self.mixed_ms
        work_ms = step + prompt * shape.prefill_tokens / 1e3 + each * decodes + read * context
        return (work_ms + pair * shape.attention_pairs / 1e6) / 1e3

    def launch_s(self, shape: StepShape) -> float:
        """Time to launch it, in seconds."""
        if shape.tokens > self.graph_tokens:
            return self.eager_launch_s
        return self.graph_launch_s if shape.prefill_tokens else self.decode_launch_s

    def of(self, step: Step) -> StepSeconds:
        """How long this step takes."""
        shape, requests = step.shape, len(step.chunks)
        gpu_s = self.gpu_s(shape)
        launch_s = self.launch_s(shape) + self.decide_request_s * requests
        update_s = self.update_request_s * requests
        if self.random is None:
            return StepSeconds(gpu_s, launch_s, update_s)
        return StepSeconds(
            gpu_s * self.random.lognormvariate(0, self.spread),
            launch_s * self.random.lognormvariate(0, self.launch_spread),
            update_s,
        )
