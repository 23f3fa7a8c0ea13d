"""Follows what runs in vLLM: who computes a prompt, who decodes, when the engine will be free."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from headway_runtime.executors.vllm.charges import Charges, Payer
from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.standing import NOBODYS, Standing
from headway_runtime.scheduling.timing.decode_clock import DecodeClocks
from headway_runtime.scheduling.timing.engine_clock import EngineClock
from headway_runtime.scheduling.timing.pace import aimed_tpot_s, has_pace
from headway_runtime.scheduling.timing.step_shape import StepShape, attention_pairs
from headway_runtime.scheduling.timing.token_load import TokenLoad
from headway_runtime.scheduling.view import Carried, Prefill, TokenDue, Work

_RECONCILE_AFTER_STEPS = 64


@dataclass
class _Request:
    """A request that runs, or waits after it ran.

    Attributes:
        request: vLLM's object.
        traffic_class: its class, None when it has no objective.
        is_late: it has missed its TTFT, or will.
        standing: whose it is, and when it is due.
        first_token_s: when its first token came, on the monotonic clock; None before.
        expected_s: when it was thought to come, while nobody has seen it.
        seen: what the planner was told of it while it computed its prompt.
    """

    request: Any
    traffic_class: TrafficClass | None
    is_late: bool
    standing: Standing = NOBODYS
    first_token_s: float | None = None
    expected_s: float | None = None
    seen: Prefill | None = None

    @property
    def payer(self) -> Payer:
        """Who is charged for it."""
        return self.standing.tenant, self.traffic_class

    @property
    def tpot_s(self) -> float | None:
        """The time between tokens to aim at."""
        return aimed_tpot_s(self.traffic_class, is_late=self.is_late)


class WorkWatch:
    """Knows what an engine has in hand without walking through its batch.

    Args:
        clock: times its steps, in seconds of the monotonic clock.
        load: keeps account of what is offered to it, by the same clock.

    Attributes:
        charges: who is charged for its steps; None where nobody is.
    """

    def __init__(self, clock: EngineClock, load: TokenLoad) -> None:
        self.clock = clock
        self.load = load
        self.charges: Charges | None = None
        self.carried = Carried()
        self.is_to_admit = False
        """Whether the plan of the step gives prompt tokens to requests that wait."""
        self.tightest_ttft_s: float | None = None
        self._requests: dict[str, _Request] = {}
        self._prefills: dict[str, _Request] = {}
        self._unseen: dict[str, _Request] = {}
        self._decodes = DecodeClocks()
        self._of_programs: set[str] = set()
        self._odd_steps = 0

    @property
    def has_prompts(self) -> bool:
        """Whether a prompt of what runs is not computed to its end."""
        return bool(self._prefills)

    def work(self, monotonic_s: float, epoch_s: float, kv_usage: float) -> Work:
        """What it has in hand, with times since the epoch."""
        offset_s = epoch_s - monotonic_s
        free_s = self.clock.free_s(monotonic_s)
        due = self._decodes.due(free_s)
        return Work(
            now_s=epoch_s,
            free_s=free_s + offset_s,
            step_time=self.clock.step_time,
            decodes=len(self._decodes),
            decode_context=self._decodes.context_tokens,
            program_decodes=len(self._of_programs),
            due=tuple([TokenDue(each.due_s + offset_s, each.tpot_s) for each in due]),
            prefills=tuple([_prefill(name, each) for name, each in self._prefills.items()]),
            tightest_ttft_s=self.tightest_ttft_s,
            kv_usage=kv_usage,
            graph_tokens=self.clock.graph_tokens,
            decode_launch_s=self.clock.decode_launch_s,
            graph_launch_s=self.clock.graph_launch_s,
            eager_launch_s=self.clock.eager_launch_s,
            arrivals_per_s=self.load.arrivals_per_s(monotonic_s),
            answer_s=self.load.answer_seconds(self.clock.step_time),
            carried=self.carried,
        )

    def admitted(
        self,
        request: Any,
        traffic_class: TrafficClass | None,
        *,
        is_late: bool,
        standing: Standing = NOBODYS,
        cached_tokens: int = 0,
    ) -> None:
        """A request runs from now on, or again; the first of its tokens were cached."""
        self.load.admitted(request.request_id, cached_tokens)
        known = self._requests.get(request.request_id)
        if known is None:
            known = _Request(request, traffic_class, is_late, standing)
            self._requests[request.request_id] = known
        self._prefills[request.request_id] = known

    def give_up(self, request_ids: Iterable[str]) -> None:
        """Of these, whose prompts are being computed, the TTFT is given up."""
        for name in request_ids:
            known = self._prefills.get(name)
            if known is not None:
                known.is_late = True

    def chunks_within(self, tokens: int) -> dict[str, int]:
        """So many tokens dealt out to prompts that are being computed, first come first."""
        chunks: dict[str, int] = {}
        for name, known in self._prefills.items():
            chunks[name] = min(tokens, max(0, _remaining(known.request)))
            tokens -= chunks[name]
        return chunks

    def background_last(self, running: list[Any]) -> None:
        """Put requests that were promised neither TTFT nor TPOT behind all others."""
        running.sort(key=self._is_background)

    def _is_background(self, request: Any) -> bool:
        known = self._requests.get(request.request_id)
        return known is None or not has_pace(known.traffic_class)

    def nobody_admitted(self) -> None:
        """The engine has admitted nobody in this step."""
        if self.is_to_admit:
            self.carried = self.carried.after_a_refusal

    def reclassified(self, traffic_class_of: Callable[[Any], TrafficClass | None]) -> None:
        """Classes have changed; ``traffic_class_of`` tells the class of vLLM's requests."""
        for name, known in self._requests.items():
            known.traffic_class = traffic_class_of(known.request)
            if name in self._decodes:
                self._decodes_from(name, known)

    def stopped(self, request_ids: Iterable[str]) -> None:
        """These have lost their KV blocks and wait again."""
        for name in request_ids:
            self._prefills.pop(name, None)
            self._unseen.pop(name, None)
            self._decodes.leave(name)
            self._of_programs.discard(name)
            if self.charges is not None:
                self.charges.decodes_no_more(name)

    def ended(self, request_ids: Iterable[str]) -> None:
        """These are gone."""
        for name in request_ids:
            known = self._requests.pop(name, None)
            self.load.ended(name, known.request.num_output_tokens if known is not None else 0)
            if known is not None:
                self.stopped((name,))

    def scheduled(self, tokens: dict[str, int], decided_s: float, running: Iterable[Any]) -> None:
        """A step was decided.

        Args:
            tokens: of each request in it; vLLM has already added them to what is computed.
            decided_s: when its decision began.
            running: all that runs.
        """
        if not tokens:
            return
        prefills = self._prefills.items()
        chunks = [(known, tokens[name]) for name, known in prefills if tokens.get(name)]
        shape = StepShape(
            prefill_tokens=sum([chunk for _, chunk in chunks]),
            decodes=len(tokens) - len(chunks),
            decode_context=self._decodes.context_tokens,
            attention_pairs=sum([_pairs(known.request, chunk) for known, chunk in chunks]),
        )
        everybody = shape.decodes == len(self._decodes)
        self._decodes.stepped(None if everybody else tokens)
        self._odd_steps = 0 if everybody else self._odd_steps + 1
        if self._odd_steps > _RECONCILE_AFTER_STEPS:
            self._reconcile(running)
        self.clock.decided(decided_s, shape)
        self.load.stepped(shape.decodes, shape.decode_context, decided_s)
        if self.charges is not None:
            self._charge(self.charges, chunks)
        for known, _ in chunks:
            if _remaining(known.request) <= 0:
                self._begins_to_decode(known, decided_s)

    @staticmethod
    def _charge(charges: Charges, chunks: Iterable[tuple[_Request, int]]) -> None:
        charges.stepped()
        for known, chunk in chunks:
            name = known.request.request_id
            charges.prompt(name, known.payer, chunk, is_late=known.is_late)

    def looked_at(self, tokens: dict[str, int], at_s: float, epoch_s: float) -> None:
        """The output of a step came at this time; after vLLM has taken it in."""
        if not tokens:
            return
        self.clock.looked_at(at_s)
        for name in [name for name in self._unseen if name in tokens]:
            self._first_token_came(name, self._unseen.pop(name), at_s, epoch_s)

    def _begins_to_decode(self, known: _Request, decided_s: float) -> None:
        name = known.request.request_id
        del self._prefills[name]
        if known.first_token_s is None:
            known.expected_s = self.clock.free_s(decided_s)
            self._unseen[name] = known
        self._decodes_from(name, known)

    def _decodes_from(self, name: str, known: _Request) -> None:
        first_s = known.first_token_s if known.first_token_s is not None else known.expected_s
        request, tpot_s = known.request, known.tpot_s
        if tpot_s is None and known.standing.program_due_s is not None:
            self._of_programs.add(name)
        else:
            self._of_programs.discard(name)
        self._decodes.join(
            name,
            tpot_s,
            first_s or 0.0,
            request.num_output_tokens + request.num_output_placeholders,
            request.num_computed_tokens,
        )
        if self.charges is not None:
            self.charges.decodes(name, known.payer)

    def _first_token_came(self, name: str, known: _Request, at_s: float, epoch_s: float) -> None:
        known.first_token_s = at_s
        promised = known.traffic_class
        if promised is not None and promised.ttft_ms is not None and not known.is_late:
            known.is_late = epoch_s - known.request.arrival_time > promised.ttft_ms / 1000
        if name not in self._decodes:
            return
        if known.is_late:
            self._decodes_from(name, known)
        else:
            self._decodes.move(name, at_s - (known.expected_s or at_s))

    def _reconcile(self, running: Iterable[Any]) -> None:
        """Drop who runs no more: the engine has ended or paused it without a word."""
        self._odd_steps = 0
        names = {each.request_id for each in running}
        self.stopped([name for name in self._requests if name not in names])


def _remaining(request: Any) -> int:
    return int(request.num_tokens - request.num_computed_tokens)


def _pairs(request: Any, chunk: int) -> float:
    return attention_pairs(request.num_computed_tokens - chunk, chunk)


def _prefill(name: str, known: _Request) -> Prefill:
    """What the planner is told of it; the same as before where nothing has changed."""
    request, before = known.request, known.seen
    computed = request.num_computed_tokens
    remaining = request.num_tokens - computed
    has_answered = request.num_output_tokens > 0
    if (
        before is not None
        and before.computed_tokens == computed
        and before.remaining_tokens == remaining
        and before.is_late is known.is_late
        and before.traffic_class is known.traffic_class
        and before.has_answered == has_answered
    ):
        return before
    known.seen = found = Prefill(
        request_id=name,
        computed_tokens=computed,
        remaining_tokens=remaining,
        arrival_s=request.arrival_time,
        traffic_class=known.traffic_class,
        is_late=known.is_late,
        tenant=known.standing.tenant,
        due_s=known.standing.due_s(known.traffic_class),
        has_answered=has_answered,
    )
    return found
