"""Why a plan differs from what the engine would do by itself."""

from __future__ import annotations

import enum


class Reason(str, enum.Enum):
    """Why a plan differs from what the engine would do by itself."""

    BUDGET_FROM_POLICY = "BudgetFromPolicy"
    """The policy's token budget is below the ceiling."""
    BUDGET_COVERS_RUNNING = "BudgetCoversRunning"
    """The budget was raised above the policy's: each running request needs its next token, and an
    engine that runs none must be able to admit one."""
    BATCH_FROM_POLICY = "BatchFromPolicy"
    """The policy's batch size is below the ceiling."""
    BATCH_FITS_BUDGET = "BatchFitsBudget"
    """The batch size was lowered: a larger batch could not decode within the budget."""
    DEADLINE_FIRST = "DeadlineFirst"
    """A request was put in front of one that arrived earlier."""
    TOKENS_DUE = "TokensDue"
    """The budget was lowered: with more prefill in the step, a token would come late."""
    GRAPH_SIZE = "GraphSize"
    """The budget was lowered to the largest CUDA graph: a larger step takes so long to launch that
    it would be late, or get less done in its time."""
    FILLS_LAUNCH = "FillsLaunch"
    """The budget was raised: so many tokens are computed while the step is launched."""
    PREFILL_FLOOR = "PrefillFloor"
    """The budget was raised above what tokens that are due leave: prompts must go on."""
    DECODE_ONLY = "DecodeOnly"
    """Nothing but decodes: what tokens that are due leave is too little for a prompt, and prompts
    have time."""
    DECODES_FIRST = "DecodesFirst"
    """Nothing but decodes: after one more token for everybody there is time for a step that is
    larger than the largest CUDA graph, and prompts get on faster."""
    GATHERS_PROMPTS = "GathersPrompts"
    """Nothing but decodes: launching a step takes longer than the prompts at hand would, and more
    of them will have come by the next one."""
    BACKGROUND_SHARE = "BackgroundShare"
    """A request without a TTFT goes first: it has waited for its share."""
    URGENT_PREFILL_FIRST = "UrgentPrefillFirst"
    """A running prompt was held back for a more urgent one."""
    RESERVED = "Reserved"
    """Slots or KV blocks are kept free for requests with a TTFT."""
    BACKGROUND_LAST = "BackgroundLast"
    """KV blocks run out: running requests without TTFT and TPOT lose theirs first."""
    CLASS_LIMIT = "ClassLimit"
    """Requests are held back: as many of their class run as may."""
    TENANTS_IN_TURN = "TenantsInTurn"
    """Requests of several tenants wait: those without a TTFT go by turns."""
