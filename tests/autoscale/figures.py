"""What the runs come to: figures of each trace, and the worst of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from tests.autoscale.arms import CLAIRVOYANT, HEADWAY, HPA_BUSY, HPA_QUEUE
from tests.autoscale.simulation import Outcome


@dataclass(frozen=True)
class Summary:
    """An arm on a trace, the mean over its seeds.

    Attributes:
        attainment: share of requests that met their objectives.
        gpu_hours: of all pods.
        ttft_p50_s: median time to first token; None where one run has none.
        ttft_p99_s: the 99th percentile.
        decisions: how often the number of pods was changed.
        pods: every minute, of the first seed.
        attainments: of each seed.
    """

    attainment: float
    gpu_hours: float
    ttft_p50_s: float | None
    ttft_p99_s: float | None
    decisions: float
    pods: tuple[int, ...]
    attainments: tuple[float, ...]

    def as_figures(self) -> dict[str, Any]:
        """For the results file."""
        return {
            "attainment": round(self.attainment, 4),
            "attainment_by_seed": [round(each, 4) for each in self.attainments],
            "gpu_hours": round(self.gpu_hours, 3),
            "ttft_p50_s": _rounded(self.ttft_p50_s),
            "ttft_p99_s": _rounded(self.ttft_p99_s),
            "scaling_decisions": round(self.decisions, 1),
            "pods_by_minute": list(self.pods),
        }


def summary(outcomes: Sequence[Outcome]) -> Summary:
    """The mean over seeds."""
    return Summary(
        attainment=fmean(each.attainment for each in outcomes),
        gpu_hours=fmean(each.gpu_hours for each in outcomes),
        ttft_p50_s=_mean([each.ttft_p50_s for each in outcomes]),
        ttft_p99_s=_mean([each.ttft_p99_s for each in outcomes]),
        decisions=fmean(each.decisions for each in outcomes),
        pods=outcomes[0].pods,
        attainments=tuple(each.attainment for each in outcomes),
    )


def best_hpa(arms: Mapping[str, Summary], kind: str = "hpa-") -> str:
    """The HPA that a user who tried them all on this trace would take.

    The cheapest of those that attain no less than ours; if none does, the one that attains most.
    """
    ours = arms[HEADWAY].attainment
    tried = {name: arm for name, arm in arms.items() if name.startswith(kind)}
    as_good = [name for name, arm in tried.items() if arm.attainment >= ours]
    if as_good:
        return min(as_good, key=lambda name: tried[name].gpu_hours)
    return max(tried, key=lambda name: (tried[name].attainment, -tried[name].gpu_hours))


def compared(arms: Mapping[str, Summary]) -> dict[str, Any]:
    """Ours against the best HPA of each kind and of all, and the clairvoyant, on one trace."""
    best = best_hpa(arms)
    found: dict[str, Any] = {
        "best_hpa": best,
        "best_hpa_queue": best_hpa(arms, HPA_QUEUE),
        "best_hpa_busy": best_hpa(arms, HPA_BUSY),
    }
    equal = at_equal_attainment(arms)
    found["gpu_hours_ratio_at_equal_attainment"] = None if equal is None else round(equal, 3)
    return found | _against(arms, best, "hpa") | _against(arms, CLAIRVOYANT, "clairvoyant")


def at_equal_attainment(arms: Mapping[str, Summary]) -> float | None:
    """Our GPU-hours over those at which an HPA would attain as much.

    Between two targets an HPA is taken to have what is between their attainment and GPU-hours, the
    cheapest of all such; targets are steps, and the best of them may attain far more than ours.
    None where no HPA attains as much.
    """
    ours = arms[HEADWAY]
    tried = [arm for name, arm in arms.items() if name.startswith("hpa-")]
    below = [arm for arm in tried if arm.attainment < ours.attainment]
    above = [arm for arm in tried if arm.attainment >= ours.attainment]
    hours = [arm.gpu_hours for arm in above]
    for less in below:
        for more in above:
            share = (ours.attainment - less.attainment) / (more.attainment - less.attainment)
            hours.append(less.gpu_hours + share * (more.gpu_hours - less.gpu_hours))
    return ours.gpu_hours / min(hours) if hours else None


def fluid_error(
    stepwise: Mapping[str, Mapping[str, Summary]], fluid: Mapping[str, Mapping[str, Summary]]
) -> dict[str, dict[str, float]]:
    """What engines that are queues are off by, against those that go step by step.

    Attainment in shares of requests, GPU-hours as a share of those of engines that go step by step;
    apart for HPAs on the queue, which a queue of another kind leads elsewhere.
    """
    kinds: dict[str, list[tuple[float, float]]] = {"hpa-queue": [], "others": []}
    for case, arms in stepwise.items():
        for name, arm in arms.items():
            other = fluid[case][name]
            kind = HPA_QUEUE if name.startswith(HPA_QUEUE) else "others"
            off = other.attainment - arm.attainment, other.gpu_hours / arm.gpu_hours - 1
            kinds[kind].append((abs(off[0]), abs(off[1])))
    return {
        kind: {
            f"{what}_{how}": round(choose(values), 4)
            for what, values in zip(
                ("attainment", "gpu_hours"), zip(*offs, strict=True), strict=True
            )
            for how, choose in (("median", median), ("most", max))
        }
        for kind, offs in kinds.items()
        if offs
    }


def _against(arms: Mapping[str, Summary], other: str, name: str) -> dict[str, float]:
    ours, theirs = arms[HEADWAY], arms[other]
    return {
        f"attainment_minus_{name}": round(ours.attainment - theirs.attainment, 4),
        f"gpu_hours_ratio_vs_{name}": round(ours.gpu_hours / theirs.gpu_hours, 3),
    }


def worst(comparisons: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The worst over traces of each comparison."""
    return {
        f"{kind}_{name}": choose(each[f"{kind}_{name}"] for each in comparisons)
        for name in ("hpa", "clairvoyant")
        for kind, choose in (("attainment_minus", min), ("gpu_hours_ratio_vs", max))
    }


def as_one_setting(traces: Sequence[Mapping[str, Summary]]) -> dict[str, dict[str, float]]:
    """Ours against each HPA with one target for all traces, as ours has one setting."""
    ours = [each[HEADWAY] for each in traces]
    names = [name for name in traces[0] if name.startswith("hpa-")]
    return {
        name: {
            "worst_attainment_minus": round(
                min(
                    our.attainment - arms[name].attainment
                    for our, arms in zip(ours, traces, strict=True)
                ),
                4,
            ),
            "gpu_hours_ratio": round(
                sum(each.gpu_hours for each in ours) / sum(arms[name].gpu_hours for arms in traces),
                3,
            ),
        }
        for name in names
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return fmean(known) if len(known) == len(values) else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
