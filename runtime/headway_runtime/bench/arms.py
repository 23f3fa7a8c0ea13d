"""Arms: the ways of scheduling that are compared, as a document that the engine reads when idle.

One engine process serves all of them, so that they share its memory, its graphs and its moment:
:mod:`headway_runtime.bench.arm_scheduler` puts an arm in force.
"""

from __future__ import annotations

import enum
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from headway_runtime.bench.rivals.ablations import ABLATIONS
from headway_runtime.policy import TrafficClass

ARM_FILE = "arm.json"
"""Name, in the run directory, of the document of the arm that is wanted."""

APPLIED_FILE = "arm-applied.json"
"""Name, in the run directory, of the engine's word on the arm that is in force."""

TOKEN_BUDGETS = (256, 384, 512, 768, 1024, 2048, 8192)
LONG_PREFILL_THRESHOLDS = (0, 512)
STATIC_BATCHES = (32, 64, 128, 256)
SARATHI_TBTS_MS = (15, 30, 100)
"""The TPOT targets of the scenarios."""

NIYAMA_ALPHA_MS = 8
"""For each remaining prompt token, as in the code of Niyama's authors."""

RULES = ("vtc", "plas", "atlas", "spf")
"""Virtual token counters, least attained service by program and by longest chain, shortest prompt
first."""

RULES_TOKEN_BUDGET = 512
"""The static budget that is best over all scenarios of :mod:`headway_runtime.bench.scenarios`."""


class Kind(str, enum.Enum):
    """Who decides what a step runs."""

    STOCK = "stock"
    """vLLM, with a static token budget."""
    STATIC_BATCH = "static"
    """vLLM, admitting a batch only when the one before it is completely done."""
    HEADWAY = "headway"
    """Headway's planner, from the classes' objectives."""
    SARATHI = "sarathi"
    """A planner after Sarathi-Serve, with a constant time between tokens."""
    NIYAMA = "niyama"
    """A planner after Niyama, from the classes' objectives."""
    ABLATION = "ablation"
    """Headway's planner with one part off."""
    RULE = "rule"
    """vLLM, with a static token budget and another order of admission."""


class Order(str, enum.Enum):
    """Order of waiting requests in vLLM's own scheduler."""

    FCFS = "fcfs"
    PRIORITY = "priority"


@dataclass(frozen=True)
class Arm:
    """One way of scheduling. What is None or 0 is as the engine was started.

    Attributes:
        kind: who decides.
        token_budget: most tokens a step processes.
        order: order of waiting requests; with a planner after Sarathi-Serve, whether those with a
            TTFT go first.
        long_prefill_threshold: most prompt tokens of one request in a step; 0 does not limit them.
        batch: requests of a batch, with static batching.
        tbt_ms: time between tokens of a planner after Sarathi-Serve, in milliseconds.
        alpha_ms: what a remaining prompt token counts in the order of one after Niyama, likewise.
        part: part of Headway's planner that is off, a key of
            :data:`headway_runtime.bench.rivals.ablations.ABLATIONS`.
        queued: open requests from which on vLLM refuses more (``--max-num-queued-reqs``); None
            refuses nobody. A real engine has it from its start.
        rule: order of admission, one of :data:`RULES`.
    """

    kind: Kind
    token_budget: int | None = None
    order: Order = Order.FCFS
    long_prefill_threshold: int = 0
    batch: int | None = None
    tbt_ms: int | None = None
    alpha_ms: int | None = None
    part: str | None = None
    queued: int | None = None
    rule: str | None = None

    @property
    def is_planned(self) -> bool:
        """Whether plans decide, Headway's or a rival's, and not vLLM."""
        return self.kind not in (Kind.STOCK, Kind.STATIC_BATCH, Kind.RULE)

    @property
    def name(self) -> str:
        """Unique name, such as ``headway``, ``stock-512-fcfs-long512``, ``static-64``.

        Or ``sarathi-30-priority``, ``niyama``, ``niyama-0``, ``headway-no-order``, ``vtc``,
        ``stock-queued-256-priority``.
        """
        by_priority = "-priority" if self.order is Order.PRIORITY else ""
        alpha = "" if self.alpha_ms == NIYAMA_ALPHA_MS else f"-{self.alpha_ms}"
        budget = "" if self.token_budget == RULES_TOKEN_BUDGET else f"-{self.token_budget}"
        long_prefill = f"-long{self.long_prefill_threshold}" if self.long_prefill_threshold else ""
        stock = f"stock-{self.token_budget}-{self.order.value}{long_prefill}"
        if self.queued is not None:
            stock = f"stock-queued-{self.queued}{by_priority}"
        return {
            Kind.STOCK: stock,
            Kind.STATIC_BATCH: f"static-{self.batch}",
            Kind.HEADWAY: "headway",
            Kind.SARATHI: f"sarathi-{self.tbt_ms}{by_priority}",
            Kind.NIYAMA: f"niyama{alpha}",
            Kind.ABLATION: f"headway-no-{self.part}",
            Kind.RULE: f"{self.rule}{budget}",
        }[self.kind]


@dataclass(frozen=True)
class Seating:
    """An arm as it is put in force.

    Attributes:
        arm: the arm.
        serial: number of the run; the engine acknowledges it and writes it into its step log.
        priorities: priority of each class in order PRIORITY; smaller runs earlier.
        weights: of tenants by name; whoever is not named has weight 1.
    """

    arm: Arm
    serial: int
    priorities: Mapping[str, int] = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> str:
        """The document."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Seating:
        """Read a document.

        Raises:
            KeyError, TypeError, ValueError: it is none.
        """
        fields: dict[str, Any] = json.loads(text)
        arm = dict(fields["arm"])
        arm["kind"], arm["order"] = Kind(arm["kind"]), Order(arm["order"])
        return cls(
            Arm(**arm), int(fields["serial"]), dict(fields["priorities"]), dict(fields["weights"])
        )


HEADWAY = Arm(Kind.HEADWAY)


def priorities(classes: Sequence[TrafficClass]) -> dict[str, int]:
    """Priorities that an operator would give: the sooner a first token is promised, the higher."""
    promised = {each.name: each.ttft_ms or math.inf for each in classes}
    ranks = sorted(set(promised.values()))
    return {name: ranks.index(ttft_ms) for name, ttft_ms in promised.items()}


def grid() -> list[Arm]:
    """Every static setting of stock vLLM that a careful operator might try."""
    return [
        Arm(Kind.STOCK, budget, order, threshold)
        for budget in TOKEN_BUDGETS
        for order in Order
        for threshold in LONG_PREFILL_THRESHOLDS
        if threshold < budget
    ]


def static_batches() -> list[Arm]:
    """Request-level static batching at several batch sizes."""
    return [Arm(Kind.STATIC_BATCH, batch=size) for size in STATIC_BATCHES]


def rivals() -> list[Arm]:
    """Other people's planners; Niyama's also with deadlines alone deciding its order."""
    return [
        *(
            Arm(Kind.SARATHI, order=order, tbt_ms=tbt_ms)
            for tbt_ms in SARATHI_TBTS_MS
            for order in Order
        ),
        Arm(Kind.NIYAMA, alpha_ms=NIYAMA_ALPHA_MS),
        Arm(Kind.NIYAMA, alpha_ms=0),
    ]


def ablations() -> list[Arm]:
    """Headway's planner with each of its parts off in turn."""
    return [Arm(Kind.ABLATION, part=part) for part in ABLATIONS]


def rules() -> list[Arm]:
    """Other orders of admission beside vLLM's own steps."""
    return [_rule(name) for name in RULES]


def _rule(name: str, budget: int = RULES_TOKEN_BUDGET) -> Arm:
    return Arm(Kind.RULE, budget, rule=name)


_STOCK = re.compile(r"stock-(\d+)-(fcfs|priority)(?:-long(\d+))?\Z")
_QUEUED = re.compile(r"stock-queued-([1-9]\d*)(-priority)?\Z")
_RULE = re.compile(rf"({'|'.join(RULES)})(?:-([1-9]\d*))?\Z")
_STATIC = re.compile(r"static-(\d+)\Z")
_SARATHI = re.compile(r"sarathi-([1-9]\d*)(-priority)?\Z")
_NIYAMA = re.compile(r"niyama(?:-(\d+))?\Z")
_ABLATION = re.compile(r"headway-no-([a-z]+)\Z")


def parse(name: str) -> Arm:
    """The arm of this name; any numbers will do, not only those of the grid.

    Raises:
        ValueError: there is no such arm.
    """
    if name == HEADWAY.name:
        return HEADWAY
    found = _of_vllm(name) or _of_a_planner(name)
    if found is None:
        raise ValueError(
            f"unknown arm {name!r}; there are headway, stock-512-priority, static-64, sarathi-30, "
            f"sarathi-30-priority, niyama, {', '.join(RULES)}, vtc-2048, stock-queued-256, "
            f"headway-no-{{{','.join(ABLATIONS)}}} ..."
        )
    return found


def _of_vllm(name: str) -> Arm | None:
    if stock := _STOCK.match(name):
        return Arm(Kind.STOCK, int(stock[1]), Order(stock[2]), int(stock[3] or 0))
    if queued := _QUEUED.match(name):
        order = Order.PRIORITY if queued[2] else Order.FCFS
        return Arm(Kind.STOCK, RULES_TOKEN_BUDGET, order, queued=int(queued[1]))
    if rule := _RULE.match(name):
        return _rule(rule[1], int(rule[2] or RULES_TOKEN_BUDGET))
    if static := _STATIC.match(name):
        return Arm(Kind.STATIC_BATCH, batch=int(static[1]))
    return None


def _of_a_planner(name: str) -> Arm | None:
    if sarathi := _SARATHI.match(name):
        order = Order.PRIORITY if sarathi[2] else Order.FCFS
        return Arm(Kind.SARATHI, order=order, tbt_ms=int(sarathi[1]))
    if niyama := _NIYAMA.match(name):
        return Arm(Kind.NIYAMA, alpha_ms=int(niyama[1] or NIYAMA_ALPHA_MS))
    ablation = _ABLATION.match(name)
    if ablation and ablation[1] in ABLATIONS:
        return Arm(Kind.ABLATION, part=ablation[1])
    return None


def parse_all(names: Sequence[str]) -> list[Arm]:
    """Arms by name; ``grid``, ``static``, ``rivals``, ``rules`` and so on are all of theirs."""
    groups = {
        "grid": grid(),
        "static": static_batches(),
        "rivals": rivals(),
        "ablations": ablations(),
        "rules": rules(),
    }
    return [arm for name in names for arm in groups.get(name, ()) or [parse(name)]]
