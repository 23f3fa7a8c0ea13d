"""When a step only decodes although there are prompts, for the sake of tokens or of the prompts.

Nothing of what is due leaves room for them; others will come to share their launch; or a token more
for everybody makes time for a large step.
"""

from __future__ import annotations

from collections.abc import Sequence

from headway_runtime.scheduling.timing.prefill_cost import (
    chunk_seconds,
    chunk_tokens,
    launched_in_s,
    slowdown,
)
from headway_runtime.scheduling.timing.slack import longest_step_s
from headway_runtime.scheduling.timing.step_shape import StepShape
from headway_runtime.scheduling.view import Candidate, Work

STEPS_WITHOUT_BACKGROUND = 8
"""After so many steps background work gets its floor, whatever is due."""

STEPS_WITHOUT_URGENT = 4
"""After so many steps prompts with a TTFT do, however far away their deadlines are."""

TTFT_RESERVE = 2.0
"""Prompts with a TTFT may wait while there is so many times the time that they take."""

LAUNCH_RESERVE = 1.1
"""A large step is prepared for where there will be so many times the time that its launch takes."""

GAIN = 1.25
"""And where prompts get on so many times faster."""


def may_wait(work: Work, found: Sequence[Candidate]) -> bool:
    """Whether prompts may get nothing in this step for the sake of tokens that are due."""
    if work.carried.decode_only_steps >= _most_decode_only_steps(found):
        return False
    urgent = [each for each in found if not each.is_background]
    if not urgent:
        return True
    # Beside tokens that keep their pace.
    needed_s = slowdown(work) * _seconds(work, urgent)
    return work.free_s + TTFT_RESERVE * needed_s < urgent[0].urgency[1]


def _seconds(work: Work, prompts: Sequence[Candidate]) -> float:
    cost = work.cost
    return sum(
        [chunk_seconds(cost, each.computed_tokens, each.remaining_tokens) for each in prompts]
    )


def _most_decode_only_steps(found: Sequence[Candidate]) -> int:
    return STEPS_WITHOUT_BACKGROUND if only_background(found) else STEPS_WITHOUT_URGENT


def gathers(work: Work, found: Sequence[Candidate]) -> bool:
    """Whether prompts that would all fit into this step better wait for others to share its launch.

    A step with prefill that takes longer to launch than to compute delays everybody who decodes
    by the difference. If these prompts wait one more step, those that come in
    it make no launch of their own. All delays together are least where that is done as long as::

        arrivals/s * seconds lost to a launch * (decodes + prompts) > prompts
    """
    if not work.decodes or not work.arrivals_per_s or not may_wait(work, found):
        return False
    prompts = len(found)
    lost_s = _lost_to_launch_s(work, found)
    return work.arrivals_per_s * lost_s * (work.decodes + prompts) > prompts


def _lost_to_launch_s(work: Work, found: Sequence[Candidate]) -> float:
    """How much longer a step with these prompts takes to launch than to compute."""
    prompts_s = _seconds(work, found)
    tokens = work.decodes + sum([each.remaining_tokens for each in found])
    launch_s = work.graph_launch_s if tokens <= work.graph_tokens else work.eager_launch_s
    without_s = max(_decode_only_seconds(work), work.base_s)
    return launch_s - without_s - prompts_s


def is_launched_late(work: Work, target_s: float) -> bool:
    """Whether any step with prefill would take longer than it may, for its launch alone."""
    has_graph = work.graph_tokens > work.decodes
    return has_graph and launched_in_s(work, work.graph_launch_s) > target_s


def decodes_first(
    work: Work, found: Sequence[Candidate], graph_tokens: int, most_tokens: int
) -> bool:
    """Whether a step without prefill now, and a large one after it, get on faster with prompts.

    With a token more for everybody who decodes, the next step may take so much longer that a launch
    without a graph is worth it. Otherwise somebody has always just begun, who leaves no time for
    more than the largest graph in any step.
    """
    if not found or work.carried.decode_only_steps or not work.due or graph_tokens <= 0:
        # Without candidates there may be others behind those that a step looks at.
        return False
    if work.program_decodes:
        # Steps beside those are no larger than the largest graph, now and next.
        return False
    decode_s = _decode_only_seconds(work)
    base_s, token_s = work.base_s, work.cost.prefill_token_s
    left_s = min([each.due_s + each.tpot_s for each in work.due]) - work.free_s - decode_s
    if work.tightest_ttft_s is not None:
        left_s = min(left_s, longest_step_s(work, work.tightest_ttft_s))
    if left_s < LAUNCH_RESERVE * work.eager_launch_s:
        return False
    fitting = chunk_tokens(work.cost, found[0].computed_tokens, left_s - base_s)
    tokens = min(fitting, most_tokens, sum([each.remaining_tokens for each in found]))
    eager_s = max(work.eager_launch_s, base_s + token_s * tokens)
    graph_s = max(work.graph_launch_s, base_s + token_s * graph_tokens)
    if not found[0].is_background and work.free_s + decode_s + eager_s > found[0].urgency[1]:
        return False
    return tokens * graph_s > GAIN * graph_tokens * (decode_s + eager_s)


def _decode_only_seconds(work: Work) -> float:
    """How long a step without prefill takes, its launch included."""
    shape = StepShape(decodes=work.decodes, decode_context=work.decode_context)
    has_graph = work.decodes <= work.graph_tokens
    launch_s = work.decode_launch_s if has_graph else work.eager_launch_s
    return max(launch_s, work.step_time.seconds(shape))


def only_background(found: Sequence[Candidate]) -> bool:
    """Whether none of them has a TTFT to keep."""
    return all(each.is_background for each in found)
