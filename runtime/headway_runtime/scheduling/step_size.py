"""What so many prompt tokens make of a step: its launch, CUDA graphs, and what is worth one."""

from __future__ import annotations

from collections.abc import Sequence

from headway_runtime.scheduling.decode_only import decodes_first, may_wait, only_background
from headway_runtime.scheduling.reason import Reason
from headway_runtime.scheduling.timing.prefill_cost import (
    chunk_tokens,
    launched_in_s,
)
from headway_runtime.scheduling.view import Candidate, Work

MOST_FLOOR_TOKENS = 256
LEAST_FLOOR_TOKENS = 16
"""Between these, the floor is what takes as long as the rest of its step: less prefill would hardly
make steps shorter, and the prompt would never end."""

WORTHWHILE = 0.25
"""Share of the floor that is worth a step with prefill, which is longer than one that only decodes
whatever it holds."""


def shaped(
    work: Work,
    found: Sequence[Candidate],
    tokens: int,
    most_tokens: int,
    target_s: float,
) -> tuple[int, tuple[Reason, ...]]:
    """The number brought to a size that is worth its step."""
    floor = _floor_tokens(work, found, most_tokens)
    worthwhile = WORTHWHILE * floor
    graph_room = work.graph_tokens - work.decodes
    has_graph = graph_room >= worthwhile
    if has_graph:
        floor = min(floor, graph_room)
    if tokens < worthwhile and may_wait(work, found):
        return 0, ((Reason.DECODE_ONLY,) if found else ())
    if has_graph and not _is_worth_it(work, tokens, graph_room, target_s):
        if decodes_first(work, found, min(tokens, graph_room), most_tokens):
            return 0, (Reason.DECODES_FIRST,)
        if tokens > graph_room:
            return graph_room, (Reason.GRAPH_SIZE,)
    reasons: tuple[Reason, ...] = ()
    if tokens < floor and (tokens < worthwhile or not only_background(found)):
        tokens, reasons = floor, (Reason.PREFILL_FLOOR,)
    hidden = min(graph_room, most_tokens, _hidden_tokens(work, found)) if has_graph else 0
    return (tokens, reasons) if hidden <= tokens else (hidden, (*reasons, Reason.FILLS_LAUNCH))


def _hidden_tokens(work: Work, found: Sequence[Candidate]) -> int:
    """Tokens that are computed while the step is launched, and make it no longer."""
    left_s = launched_in_s(work, work.graph_launch_s) - work.base_s
    computed_tokens = found[0].computed_tokens if found else 0
    return int(chunk_tokens(work.cost, computed_tokens, left_s))


def _floor_tokens(work: Work, found: Sequence[Candidate], most_tokens: int) -> int:
    computed_tokens = found[0].computed_tokens if found else 0
    balanced = chunk_tokens(work.cost, computed_tokens, work.base_s)
    return min(most_tokens, max(LEAST_FLOOR_TOKENS, min(MOST_FLOOR_TOKENS, int(balanced))))


def _is_worth_it(work: Work, tokens: int, graph_tokens: int, target_s: float) -> bool:
    """Whether to take a step without a graph."""
    in_time = not _launch_is_too_long(work, target_s)
    return in_time and eager_is_faster(work, tokens, graph_tokens)


def eager_is_faster(work: Work, tokens: int, graph_tokens: int) -> bool:
    """Whether larger steps without a graph get on faster with prompts than those with one.

    A step takes as long as its launch at least, so that one a little larger may take twice as long.
    """
    base_s, token_s = work.base_s, work.cost.prefill_token_s
    eager_s = max(work.eager_launch_s, base_s + token_s * tokens)
    graph_s = max(work.graph_launch_s, base_s + token_s * graph_tokens)
    return tokens * graph_s > graph_tokens * eager_s


def _launch_is_too_long(work: Work, target_s: float) -> bool:
    """Whether launching a step without a graph would take longer than the step may."""
    return launched_in_s(work, work.eager_launch_s) > target_s or target_s < work.eager_launch_s
