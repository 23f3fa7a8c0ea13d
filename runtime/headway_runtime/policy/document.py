"""The policy document itself: what an engine is told about how to schedule."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class Mode(str, enum.Enum):
    """How much of the plan the engine carries out."""

    ACT = "Act"
    """The plan decides what the engine runs."""
    SHADOW = "Shadow"
    """The plan is made and recorded; the engine runs its stock decision."""
    OFF = "Off"
    """No plan is made."""


class WhenUnmet(str, enum.Enum):
    """What becomes of a request whose class's objectives cannot be kept when it comes."""

    QUEUE = "Queue"
    """It waits, behind those whose objectives can be kept."""
    SHED = "Shed"
    """It is refused at once, with a time after which to try again."""


@dataclass(frozen=True, order=True)
class Stamp:
    """Total order of policies; the highest one wins, so an old policy can never be replayed.

    Attributes:
        generation: ``metadata.generation`` of the spec the policy was decided from.
        epoch: leadership term of the operator that decided it (its Lease's transitions). Two
            operators during an upgrade are told apart by it. 0 is the baseline in the ConfigMap.
        counter: decisions within that term.
    """

    generation: int
    epoch: int
    counter: int

    def __str__(self) -> str:
        return f"{self.generation}.{self.epoch}.{self.counter}"


@dataclass(frozen=True)
class Scope:
    """Whom a policy is for. A pod refuses what is addressed to another service or another pod.

    Attributes:
        service_uid: uid of the InferenceService.
        pod_uid: uid of one pod, or None for every pod of the service.
    """

    service_uid: str
    pod_uid: str | None = None

    def covers(self, service_uid: str, pod_uid: str) -> bool:
        """Whether a pod of this service is addressed."""
        return self.service_uid == service_uid and self.pod_uid in (None, pod_uid)


@dataclass(frozen=True)
class TrafficClass:
    """A class of requests and the objective its requests are ordered by.

    Attributes:
        name: what a request names in ``vllm_xargs.headway_class``.
        ttft_ms: time to first token promised, in milliseconds; None promises none.
        tpot_ms: mean time per output token after the first promised, in milliseconds; None promises
            none.
        deadline_s: time to the last token promised, in seconds; None promises none.
        max_running: most requests of the class running at once; None limits it by the batch alone.
        weight: a token of the class counts so many times less against its tenant's share.
        when_unmet: what becomes of a request whose objectives cannot be kept.
        max_queued: most requests of the class waiting in an engine, others are refused; None does
            not limit them.
    """

    name: str
    ttft_ms: int | None = None
    tpot_ms: int | None = None
    deadline_s: int | None = None
    max_running: int | None = None
    weight: int = 1
    when_unmet: WhenUnmet = WhenUnmet.QUEUE
    max_queued: int | None = None


@dataclass(frozen=True)
class Tenant:
    """Somebody who shares the engines with others.

    Attributes:
        name: what metrics and headers call it.
        weight: its share, relative to those of the others.
        key_sha256: SHA-256 of the API key it is known by, in hexadecimal; None where only a trusted
            header names it.
    """

    name: str
    weight: int = 1
    key_sha256: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class PriorityCoefficients:
    """How work without a deadline is ranked, in percent; they add up to 100.

    Attributes:
        base: counts what its program was served so far: less is better.
        depth: counts how near the end of its program it is.
        progress: counts whether the rest of its program waits for it.
        learn: whether engines tune them to the programs they see.
    """

    base: int = 50
    depth: int = 30
    progress: int = 20
    learn: bool = False


@dataclass(frozen=True)
class Policy:
    """One decision about how an engine schedules, complete in itself.

    Attributes:
        scope: the pods it is for.
        stamp: its place in the order of decisions.
        mode: how much of the plan is carried out.
        max_batch_size: most requests running at once; None leaves the engine's ceiling.
        token_budget: most tokens one step may process; None leaves the engine's ceiling.
        theta_ppm: what switching to another request must gain at least, in parts per million; None
            while it is not known. Exported, and not used by the planner yet.
        classes: classes of traffic; names are unique.
        default_class: the class of a request that names none or an unknown one; None means it has
            no objective and runs after those that have.
        tenants: who shares the engines; whoever is none of them shares as one tenant.
        trust_headers: whether headers may name tenant, class and program.
        fairness_window: over so many scheduling decisions tenants get their shares.
        priority: how work without a deadline is ranked.
    """

    scope: Scope
    stamp: Stamp
    mode: Mode = Mode.ACT
    max_batch_size: int | None = None
    token_budget: int | None = None
    theta_ppm: int | None = None
    classes: tuple[TrafficClass, ...] = ()
    default_class: str | None = None
    tenants: tuple[Tenant, ...] = ()
    trust_headers: bool = False
    fairness_window: int = 100
    priority: PriorityCoefficients = PriorityCoefficients()
