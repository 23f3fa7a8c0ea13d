"""What results were measured on, and what to be careful about, in sentences. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from headway_runtime.bench.results import Result

_LATE_CLIENT_MS = 20
_UNPLANNED = ("failed", "late", "breaker")


def conditions(results: Sequence[Result]) -> str:
    """The report's second paragraph."""

    def all_of(name: str) -> str:
        return (
            ", ".join(sorted({str(each[name]) for each in results if each.get(name) is not None}))
            or "none"
        )

    late = [
        each["name"]
        for each in results
        if (each["summary"]["client_lateness_ms"]["p99"] or 0) > _LATE_CLIENT_MS
    ]
    lines = [
        (
            f"{len(results)} runs; vLLM {all_of('engine_version')}; GPU {all_of('gpu')}; "
            f"models {all_of('shape')} (random weights); seeds {all_of('seed')}; "
            f"API servers of an engine {all_of('api_servers')}."
        ),
        (
            "Arms were served one after the other, with the same requests and an empty prefix "
            "cache each."
        ),
        _engines(results),
    ]
    if not all(each["async_scheduling"] for each in results):
        lines.append("Async scheduling was off in some runs.")
    unplanned = {
        each["name"]: count
        for each in results
        if (count := sum((each["plans"] or {}).get(name, 0) for name in _UNPLANNED))
    }
    if unplanned:
        told = ", ".join(f"{count} in {name}" for name, count in unplanned.items())
        lines.append(f"Steps that were to be planned and were not: {told}.")
    if late:
        lines.append(f"Sent late by the client, to be read with care: {', '.join(late)}.")
    return "\n".join(lines)


def _engines(results: Sequence[Result]) -> str:
    """Whether arms that are compared were served by one engine process."""
    engines = defaultdict(set)
    for each in results:
        engines[each["shape"], each["scenario"], each["seed"]].add(each["engine_started_s"])
    several = [
        f"{scenario} seed {seed} ({shape})"
        for (shape, scenario, seed) in sorted(engines)
        if len(engines[shape, scenario, seed]) > 1
    ]
    processes = len({each["engine_started_s"] for each in results})
    same = "all arms of a scenario and seed by the same one"
    but = f" but for {', '.join(several)}" if several else ""
    return f"Engine processes: {processes}; {same}{but}."
