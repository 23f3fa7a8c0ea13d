"""Token budget and batch size of a step."""

from __future__ import annotations

from headway_runtime.scheduling.reason import Reason
from headway_runtime.scheduling.view import Limits


def decide_limits(
    ceilings: Limits, wanted: Limits, running: int, tokens_per_decode: int
) -> tuple[Limits, tuple[Reason, ...]]:
    """Limits within the ceilings that let every running request have its next token.

    A budget below what the running requests need would starve those at the end of the batch, so
    admission is held back until the batch fits the budget, and until then the budget covers it. It
    always covers one request: with draft tokens an engine admits none that gets less.

    Returns:
        The limits and why they differ from the ceilings.
    """
    wanted_budget = min(wanted.token_budget, ceilings.token_budget)
    wanted_batch = min(wanted.max_batch_size, ceilings.max_batch_size)
    batch = min(wanted_batch, max(1, wanted_budget // tokens_per_decode))
    budget = min(ceilings.token_budget, max(wanted_budget, max(1, running) * tokens_per_decode))
    reasons = []
    if wanted_budget < ceilings.token_budget:
        reasons.append(Reason.BUDGET_FROM_POLICY)
    if budget > wanted_budget:
        reasons.append(Reason.BUDGET_COVERS_RUNNING)
    if wanted_batch < ceilings.max_batch_size:
        reasons.append(Reason.BATCH_FROM_POLICY)
    if batch < wanted_batch:
        reasons.append(Reason.BATCH_FITS_BUDGET)
    return Limits(budget, batch), tuple(reasons)
