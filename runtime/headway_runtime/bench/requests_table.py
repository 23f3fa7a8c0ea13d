"""Requests of one run as columns of rounded numbers, so that a result stays small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from headway_runtime.bench.analysis import attained
from headway_runtime.bench.outcome import Outcome
from headway_runtime.policy import TrafficClass


def table(outcomes: Sequence[Outcome], classes: Sequence[TrafficClass]) -> Mapping[str, Any]:
    """One list a column, one entry a request, in order of arrival.

    ``class`` indexes ``class_names``; times are milliseconds but for ``sent_s`` and ``latency_s``;
    a time that was not measured is None. ``tenant`` and ``program`` are there where any is told.
    """
    names = [each.name for each in classes]
    promised = {each.name: each for each in classes}
    return {
        "class_names": names,
        "class": [names.index(o.class_name) for o in outcomes],
        "sent_s": [round(o.sent_s, 3) for o in outcomes],
        "prompt_tokens": [o.prompt_tokens for o in outcomes],
        "output_tokens": [len(o.token_s) for o in outcomes],
        "ending": [o.ending.value[0] for o in outcomes],
        "attained": [int(attained(o, promised[o.class_name])) for o in outcomes],
        "ttft_ms": [_ms(o.ttft_s) for o in outcomes],
        "tpot_ms": [_ms(o.tpot_s, 2) for o in outcomes],
        "latency_s": [round(o.latency_s, 3) for o in outcomes],
        "longest_gap_ms": [_ms(_longest_gap_s(o)) for o in outcomes],
        **_told("tenant", [o.tenant for o in outcomes]),
        **_told("program", [o.program for o in outcomes]),
    }


def _told(column: str, names: list[str]) -> dict[str, list[str]]:
    return {column: names} if any(names) else {}


def _longest_gap_s(outcome: Outcome) -> float | None:
    return max((later - earlier for earlier, later in pairwise(outcome.token_s)), default=None)


def _ms(seconds: float | None, digits: int = 1) -> float | None:
    return None if seconds is None else round(1000 * seconds, digits)
