"""The report beside ``classes.json``. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headway_runtime.bench.arms import HEADWAY
from headway_runtime.bench.classes.details import COLUMNS

_NOTHING = "-"
_NO_TIME = " A refusal takes no time on a simulated engine."

TARGETS: Mapping[str, str] = {
    "overload_accepted_attainment": ">= 0.95",
    "refusal_ms_p99": "<= 100",
    "overload_tokens_ratio": ">= 1",
    "jain_index": ">= 0.95",
    "requests_beyond_bound": "0",
    "program_p50_ratio_vs_fcfs": ">= 1.5",
    "program_p95_ratio_vs_fcfs": ">= 1.5",
    "program_p50_ratio_vs_best_other": ">= 1",
    "program_p95_ratio_vs_best_other": ">= 1",
    "wrong_cost_p50": "1, but for noise",
    "wrong_cost_p95": "1, but for noise",
    "malicious_cost_p50": "1, but for noise",
    "malicious_cost_p95": "1, but for noise",
}
"""What each figure is held against."""


def report(document: Mapping[str, Any]) -> str:
    """The report as Markdown.

    Args:
        document: what ``classes.json`` holds.
    """
    where = "on a simulated engine" if document["is_simulated"] else "on a real engine"
    figures = {name: document[name] for name in document["figures"]}
    parts = [
        "# Classes, tenants and programs",
        (
            f"Measured {where}, {document['runs']} runs, seeds "
            f"{', '.join(map(str, document['seeds']))}: `{document['command']}`."
        ),
        *(["\n".join(told)] if (told := _conditions(document)) else []),
        "## In short",
        _table(
            ("figure", "value", "goal"),
            [(name, _text(value), TARGETS.get(name, "")) for name, value in figures.items()],
        ),
        (
            "Of several scenarios the worst one counts. Ratios of completion times are theirs over "
            "ours, costs are with the lie over without; `-` was not measured."
            f"{_NO_TIME if document['is_simulated'] else ''}"
        ),
        *_ablations(document),
        "## Every scenario",
        "Means over seeds of each run's figure.",
        *(part for name, arms in document["scenarios"].items() for part in _scenario(name, arms)),
    ]
    return "\n\n".join(parts) + "\n"


def _conditions(document: Mapping[str, Any]) -> list[str]:
    """On what, and by which commands, runs on real engines were made."""
    return [f"- {name}: {', '.join(told)}" for name, told in document["conditions"].items()]


def _ablations(document: Mapping[str, Any]) -> list[str]:
    ablations: Mapping[str, Mapping[str, Any]] = document["ablations"]
    if not ablations:
        return []
    names = [
        name for name in TARGETS if any(row.get(name) is not None for row in ablations.values())
    ]
    rows = [
        (HEADWAY.name, *(_text(document[name]) for name in names)),
        *((arm, *(_text(row.get(name)) for name in names)) for arm, row in ablations.items()),
    ]
    return ["## With a part off", _table(("arm", *names), rows)]


def _scenario(name: str, arms: Mapping[str, Mapping[str, Any]]) -> list[str]:
    columns = [each for each in COLUMNS if any(each in row for row in arms.values())]
    rows = [
        (f"**{arm}**" if arm == HEADWAY.name else arm, *(_text(row.get(c)) for c in columns))
        for arm, row in arms.items()
    ]
    parts = [f"### {name}", _table(("arm", *columns), rows)]
    if any("tenants" in row for row in arms.values()):
        parts.append(_tenants(arms))
    return parts


def _tenants(arms: Mapping[str, Mapping[str, Any]]) -> str:
    names = sorted({name for row in arms.values() for name in row.get("tenants", {})})
    rows = [
        (
            arm,
            *(
                _text(row["tenants"].get(name, {}).get(figure))
                for name in names
                for figure in _OF_TENANTS
            ),
        )
        for arm, row in arms.items()
        if "tenants" in row
    ]
    header = (f"{name} {title}" for name in names for title in _OF_TENANTS.values())
    return _table(("arm", *header), rows)


_OF_TENANTS = {
    "attainment": "attainment",
    "service_share": "of service",
    "longest_wait_s": "longest wait s",
}


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)


def _text(value: object) -> str:
    if value is None:
        return _NOTHING
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"  # noqa: PLR2004 - digits that tell something
