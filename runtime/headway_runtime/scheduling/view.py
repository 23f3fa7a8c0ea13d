"""What the planner sees of an engine before a step."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.once import Once
from headway_runtime.scheduling.timing.step_time_model import Coefficients, StepTimeModel
from headway_runtime.scheduling.urgency import BACKGROUND, MISFIT, ttft_deadline_s, urgency

Urgency = tuple[int, float]
"""Sort key of a waiting request; smaller runs earlier. See :func:`urgency.urgency`."""


@dataclass(frozen=True)
class Limits:
    """How much one step may take on.

    Attributes:
        token_budget: most tokens the step processes.
        max_batch_size: most requests running at once.
    """

    token_budget: int
    max_batch_size: int


class Readiness(enum.Enum):
    """Whether the engine admits a waiting request when its turn comes, or passes over it."""

    READY = enum.auto()
    """It is admitted."""
    PENDING = enum.auto()
    """It is passed over, and may be ready at any moment: its grammar is being compiled."""
    BLOCKED = enum.auto()
    """It is passed over until somebody acts: a paused session, a grammar that is none."""


@dataclass(frozen=True)
class WaitingRequest:
    """A request that waits for admission.

    Attributes:
        is_running: it is in the batch, so that its chunk can be limited.
        computed_tokens: tokens that are computed; none that this one has a claim on.
        request_id: the engine's id of it.
        arrival_s: when it arrived, seconds since the epoch.
        traffic_class: the class it belongs to, None when it has no objective.
        readiness: whether the engine would admit it now.
        prefill_tokens: tokens to compute before its first one comes, what prefixes in the cache
            save not counted; 0 where nobody needs to know.
        is_late: it can keep its TTFT no more, and waits among those without one.
        is_misfit: the engine could not admit it when nothing else ran: it waits behind all others.
        tenant: whose it is.
        due_s: when it is due in the order although its class says nothing of it, seconds since the
            epoch; None where the class alone decides.
    """

    is_running: ClassVar[bool] = False
    computed_tokens: ClassVar[int] = 0

    request_id: str
    arrival_s: float
    traffic_class: TrafficClass | None = None
    readiness: Readiness = Readiness.READY
    prefill_tokens: int = 0
    is_late: bool = False
    is_misfit: bool = False
    tenant: str = ""
    due_s: float | None = None

    @Once
    def urgency(self) -> Urgency:
        """Where it stands in the order of waiting work."""
        if self.is_misfit:
            return MISFIT
        return urgency(self.arrival_s, self.traffic_class, is_late=self.is_late, due_s=self.due_s)

    @Once
    def deadline_s(self) -> float | None:
        """When its first token was promised; None if it has no TTFT to keep."""
        return ttft_deadline_s(self.arrival_s, self.traffic_class, is_late=self.is_late)

    @Once
    def is_background(self) -> bool:
        """It has no TTFT to keep."""
        return self.urgency[0] == BACKGROUND

    @Once
    def remaining_tokens(self) -> int:
        """As of one that runs: all there are to compute."""
        return self.prefill_tokens


@dataclass(frozen=True)
class Lane:
    """The requests of one class with a limit that wait behind those that may run.

    Attributes:
        class_name: the class.
        room: how many more of its requests may run; none when it is 0 or less.
        waiting: its waiting requests in order of urgency, read lazily.
        urgencies: the same requests' urgencies, which cost less to read.
        has_ttft: its requests were promised one.
    """

    class_name: str
    room: int
    waiting: Sequence[WaitingRequest] = ()
    urgencies: Sequence[Urgency] = ()
    has_ttft: bool = False


@dataclass(frozen=True)
class Prefill:
    """A running request whose prompt is not computed to its end.

    Attributes:
        is_running: likewise.
        request_id: the engine's id of it.
        computed_tokens: tokens that are computed.
        remaining_tokens: tokens to compute before its first one comes.
        arrival_s: when it arrived, seconds since the epoch.
        traffic_class: the class it belongs to, None when it has no objective.
        is_late: it can keep its TTFT no more.
        tenant: whose it is.
        due_s: when it is due in the order although its class says nothing of it, likewise.
        has_answered: its first token came before, and it is computed once more.
    """

    is_running: ClassVar[bool] = True

    request_id: str
    computed_tokens: int
    remaining_tokens: int
    arrival_s: float
    traffic_class: TrafficClass | None = None
    is_late: bool = False
    tenant: str = ""
    due_s: float | None = None
    has_answered: bool = False

    @Once
    def urgency(self) -> Urgency:
        """Where it stands in the order of waiting work."""
        return urgency(self.arrival_s, self.traffic_class, is_late=self.is_late, due_s=self.due_s)

    @Once
    def deadline_s(self) -> float | None:
        """When its first token was promised; None if it has no TTFT to keep."""
        return ttft_deadline_s(self.arrival_s, self.traffic_class, is_late=self.is_late)

    @Once
    def is_background(self) -> bool:
        """It has no TTFT to keep."""
        return self.urgency[0] == BACKGROUND


Candidate = WaitingRequest | Prefill
"""A request whose prompt may be computed."""

BackgroundRequest = Candidate
"""One without a TTFT to keep."""


@dataclass(frozen=True)
class TenantView:
    """A tenant of which requests wait.

    Attributes:
        name: the tenant.
        counter: weighted tokens it was served.
        weight: its share, relative to others.
        background: its waiting requests without a TTFT to keep, in order, read lazily.
    """

    name: str
    counter: float
    weight: int = 1
    background: Sequence[BackgroundRequest] = ()


@dataclass(frozen=True)
class Tenants:
    """Those who share an engine.

    Attributes:
        waiting: those of which requests wait; empty where only one shares it.
        levels: how far a tenant is above its share of late; 0 where it has no more than that.
        window: over so many decisions they get their shares.
    """

    waiting: Sequence[TenantView] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    window: int = 100


class TokenDue(NamedTuple):
    """The decoding requests with one TPOT target, of which the most pressed one counts.

    Attributes:
        due_s: when its next token is due, seconds since the epoch.
        tpot_s: the target, in seconds.
    """

    due_s: float
    tpot_s: float


NO_TENANTS = Tenants()

STEPS_AFTER_A_REFUSAL = 8
"""Then those that wait are tried again: blocks may have come free meanwhile."""


@dataclass(frozen=True)
class Carried:
    """What is carried from one step to the next.

    Attributes:
        background_credit_tokens: prompt tokens that background work may compute before work with a
            deadline does.
        steps_without_background: steps in a row in which waiting background work got nothing.
        running_first_steps: for so many more steps prompts that run go before those that wait,
            however urgent: the engine could not admit those.
        decode_only_steps: steps in a row in which no prompt got anything although there were some.
        next_look_s: until then nobody looks for requests that lose their TTFT, seconds since the
            epoch.
    """

    background_credit_tokens: float = 0.0
    steps_without_background: int = 0
    running_first_steps: int = 0
    decode_only_steps: int = 0
    next_look_s: float = 0.0

    @property
    def after_a_refusal(self) -> Carried:
        """The same after a step in which the engine admitted nobody although the plan did.

        Without it, a running prompt held back for one that gets no KV blocks would hold on to its
        own, and both would wait for ever.
        """
        return replace(self, running_first_steps=STEPS_AFTER_A_REFUSAL)


@dataclass(frozen=True)
class Work:
    """What an engine has in hand, as far as the length of its steps depends on it.

    Attributes:
        now_s: time of the step's decision, seconds since the epoch.
        free_s: when it will be done with all steps that are under way, likewise; not before now.
        step_time: predicts how long steps take.
        decodes: running requests that decode.
        decode_context: tokens before those.
        program_decodes: those of them that are calls of programs and were promised no pace.
        due: their next tokens with a target, for each target the most pressed one.
        prefills: running requests that compute their prompts.
        tightest_ttft_s: least TTFT of any class, in seconds; None where there is none.
        kv_usage: share of KV blocks in use, 0 to 1.
        graph_tokens: largest step that runs as a CUDA graph; 0 where there are none.
        decode_launch_s: time it takes to launch a step that only decodes.
        graph_launch_s: time it takes to launch one with prefill that runs as a CUDA graph.
        eager_launch_s: time it takes to launch a larger one.
        arrivals_per_s: requests that have come lately.
        answer_s: what the answer of a request like recent ones takes, in engine-seconds.
        carried: from the step before.
    """

    now_s: float
    free_s: float
    step_time: StepTimeModel
    decodes: int = 0
    decode_context: int = 0
    program_decodes: int = 0
    due: Sequence[TokenDue] = ()
    prefills: Sequence[Prefill] = ()
    tightest_ttft_s: float | None = None
    kv_usage: float = 0.0
    graph_tokens: int = 0
    decode_launch_s: float = 0.0
    graph_launch_s: float = 0.0
    eager_launch_s: float = 0.0
    arrivals_per_s: float = 0.0
    answer_s: float = 0.0
    carried: Carried = field(default_factory=Carried)

    @Once
    def cost(self) -> Coefficients:
        """What steps with prefill cost."""
        return self.step_time.mixed

    @Once
    def base_s(self) -> float:
        """Length of a step with prefill before any of it."""
        cost = self.cost
        return (
            cost.step_s + cost.decode_s * self.decodes + cost.context_token_s * self.decode_context
        )


@dataclass(frozen=True)
class StepView:
    """One engine just before a step.

    The waiting queue is ``settled``, then the lanes one after the other, then ``unsettled``, then
    ``unseen`` ones. Requests stay settled, or in their lane, from step to step, so that a step
    costs what has newly arrived and not what is waiting.

    Attributes:
        ceilings: limits the engine was started with; nothing goes above them.
        wanted: limits the policy asks for.
        running: requests that are running.
        tokens_per_decode: tokens a decoding request takes in a step: 1, and one more for each
            draft token of speculative decoding.
        settled: urgencies of the waiting requests that were put in order before, read lazily.
        unsettled: waiting requests to be put in order now, in order of arrival.
        lanes: one for each class with a limit; empty when no class has one.
        front: the settled requests themselves, read lazily; needed with lanes or work only. They
            may be of a class with a limit: let through before, or preempted.
        unseen: waiting requests that are to be put in order in later steps.
        work: what the engine has in hand; None where the lengths of its steps cannot be told, and
            then the policy alone limits them.
        tenants: who shares the engine.
    """

    ceilings: Limits
    wanted: Limits
    running: int
    tokens_per_decode: int = 1
    settled: Sequence[Urgency] = ()
    unsettled: Sequence[WaitingRequest] = ()
    lanes: Sequence[Lane] = ()
    front: Sequence[WaitingRequest] = ()
    unseen: int = 0
    work: Work | None = None
    tenants: Tenants = NO_TENANTS
