"""The figures as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.autoscale.arms import CLAIRVOYANT, HEADWAY

_EVERY_MINUTES = 4
_HEAD = (
    "Written by `make bench-autoscale`; [README.md](README.md) says how it is made. The best HPA "
    "of a trace is **bold**. The first ones are parts of traces that no number was chosen by; two "
    "rules were given up for how they did there. [autoscale-bursts.md](autoscale-bursts.md) has "
    "what happens in azure-code second by second, and what was tried."
)


def page(figures: Mapping[str, Any]) -> str:
    """All traces: what each arm attains and costs, and its pods over time."""
    parts = [
        "# Pods by token load, against a HorizontalPodAutoscaler",
        _HEAD,
        *(_trace(name, each) for name, each in figures["held_out"].items()),
        "# The same and more HPAs, with engines that are queues",
        _error(figures["fluid_error"]),
        *(_trace(name, each) for name, each in figures["held_out_as_queues"].items()),
        _one_setting(figures["vs_one_hpa_for_all_traces"]),
        "# Parts of the traces that rules were chosen by",
        *(_trace(name, each) for name, each in figures["seen"].items()),
        f"# Up to {figures['most_replicas']} pods",
        *(_trace(name, each) for name, each in figures["scaled"].items()),
    ]
    return "\n\n".join(parts) + "\n"


def _trace(name: str, found: Mapping[str, Any]) -> str:
    about = found["about"]
    first, last = about["minutes"]
    told = (
        f"{about['requests']} requests of minutes {first} to {last}, a GPU "
        f"{about['slower']:g} times slower than an H200 with a model of 8 billion parameters, TTFT "
        f"{about['ttft_ms'] / 1000:g} s, TPOT {about['tpot_ms']} ms."
    )
    return f"## {name}\n\n{told}\n\n{_arms(found)}\n\n{_over_time(found)}"


def _arms(found: Mapping[str, Any]) -> str:
    rows = []
    for name, arm in found["arms"].items():
        is_best = name == found["best_hpa"]
        rows.append(
            [
                f"**{name}**" if is_best else name,
                f"{100 * arm['attainment']:.2f}",
                f"{arm['gpu_hours']:.2f}",
                _seconds(arm["ttft_p50_s"]),
                _seconds(arm["ttft_p99_s"]),
                f"{arm['scaling_decisions']:g}",
            ]
        )
    header = ["arm", "attainment, %", "GPU-hours", "TTFT p50, s", "TTFT p99, s", "decisions"]
    return _table(header, rows)


def _over_time(found: Mapping[str, Any]) -> str:
    shown = (HEADWAY, CLAIRVOYANT, found["best_hpa"])
    series = [
        ("pods that the work needs", found["needed_by_minute"]),
        *((name, found["arms"][name]["pods_by_minute"]) for name in shown),
    ]
    minutes = range(0, len(series[0][1]), _EVERY_MINUTES)
    rows = [[name, *(str(values[minute]) for minute in minutes)] for name, values in series]
    return _table(["minute", *map(str, minutes)], rows)


def _one_setting(found: Mapping[str, Mapping[str, float]]) -> str:
    rows = [
        [name, f"{100 * each['worst_attainment_minus']:+.2f}", f"{each['gpu_hours_ratio']:.2f}"]
        for name, each in found.items()
    ]
    header = ["HPA", "worst attainment of ours minus its, points", "our GPU-hours / its"]
    return f"## One setting for all of these traces\n\n{_table(header, rows)}"


def _error(found: Mapping[str, Mapping[str, float]]) -> str:
    rows = [
        [kind, *(f"{100 * value:.2f}" for value in each.values())] for kind, each in found.items()
    ]
    header = [
        *("arms", "attainment, median, points", "at most"),
        *("GPU-hours, median, %", "at most"),
    ]
    told = (
        "Engines are queues from here on, not simulated step by step. In the traces above that is "
        "off by:"
    )
    return f"{told}\n\n{_table(header, rows)}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows))


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.2f}"
