"""The planner, or the order of admission, of an arm."""

from __future__ import annotations

from collections.abc import Mapping

from headway_runtime.bench.arms import Arm, Kind, Order
from headway_runtime.bench.rivals.ablations import ABLATIONS
from headway_runtime.bench.rivals.admission_rule import AdmissionRule
from headway_runtime.bench.rivals.attained_service import LeastAttainedService
from headway_runtime.bench.rivals.niyama import niyama
from headway_runtime.bench.rivals.rival import Rival
from headway_runtime.bench.rivals.sarathi import sarathi
from headway_runtime.bench.rivals.shortest_prompt import ShortestPromptFirst
from headway_runtime.bench.rivals.token_counters import VirtualTokenCounters
from headway_runtime.scheduling.planner import plan_step


def rival_of(arm: Arm) -> Rival:
    """What plans the steps of this arm: Headway's own planner for all arms that name no other.

    Raises:
        ValueError: the arm lacks what its planner is made from.
        KeyError: there is no such ablation.
    """
    if arm.kind is Kind.SARATHI:
        if arm.tbt_ms is None:
            raise ValueError("an arm after Sarathi-Serve needs a time between tokens")
        by_priority = arm.order is Order.PRIORITY
        return Rival(sarathi(arm.tbt_ms / 1000, by_priority=by_priority))
    if arm.kind is Kind.NIYAMA:
        if arm.alpha_ms is None:
            raise ValueError("an arm after Niyama needs its factor alpha")
        return Rival(niyama(arm.alpha_ms / 1000))
    if arm.kind is Kind.ABLATION:
        return ABLATIONS[arm.part or ""]
    return Rival(plan_step)


def rule_of(arm: Arm, weights: Mapping[str, int]) -> AdmissionRule | None:
    """The order of admission of this arm; None leaves it to vLLM or to a planner.

    Args:
        arm: the arm.
        weights: of tenants by name.

    Raises:
        ValueError: there is no such order.
    """
    if arm.kind is not Kind.RULE:
        return None
    if arm.rule == "vtc":
        return VirtualTokenCounters(weights)
    if arm.rule in ("plas", "atlas"):
        return LeastAttainedService(by_longest_chain=arm.rule == "atlas")
    if arm.rule == "spf":
        return ShortestPromptFirst()
    raise ValueError(f"no order of admission is called {arm.rule!r}")
