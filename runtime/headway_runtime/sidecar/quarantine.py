"""What is told of engines that died, and of requests that are tried or refused because of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from headway_runtime.exchange.refusal_counts import QUARANTINED
from headway_runtime.exchange.suspects_file import Told
from headway_runtime.scheduling.quarantine.suspects import Standing, Suspects, standing

_REFUSED = Standing.QUARANTINED
_MOST_TOLD = 16


def quarantine_metrics(
    told: Told, refusals: Mapping[tuple[str, str], int], now_s: float
) -> Iterator[Metric]:
    """Metrics of it; but for the first one no series until an engine has died.

    Args:
        told: by the engines.
        refusals: requests that were refused where they came in, by class and reason.
        now_s: now, seconds since the epoch.
    """
    found = [each for each, _, _ in _held(told.suspects, now_s)]
    yield CounterMetricFamily(
        "headway_engine_crashes", "Engines that died with requests under way.", value=told.crashes
    )
    yield GaugeMetricFamily(
        "headway_suspected_requests",
        "Different requests that are tried one at a time after an engine died.",
        value=found.count(Standing.TRIED) if told.crashes else None,
    )
    yield GaugeMetricFamily(
        "headway_quarantined_requests",
        "Different requests that are refused since engines died of them.",
        value=found.count(Standing.QUARANTINED) if told.crashes else None,
    )
    yield CounterMetricFamily(
        "headway_quarantine_refusals",
        "Requests refused with 422 since engines died of them.",
        value=refusals.get(QUARANTINED, 0) if told.crashes else None,
    )


def quarantined_document(told: Told, now_s: float) -> list[dict[str, Any]]:
    """Those that are refused now, the newest crash first, without whose they are; some at most."""
    refused = [each for found, each, _ in _held(told.suspects, now_s) if found is _REFUSED]
    refused.sort(key=lambda each: told.suspects[each].last_s, reverse=True)
    return [
        {"fingerprint": each.hex(), "crashes": told.suspects[each].in_all}
        for each in refused[:_MOST_TOLD]
    ]


def quarantine_document(told: Told, now_s: float) -> dict[str, Any]:
    """All of it as a JSON object: suspects by fingerprint, the oldest crash first."""
    held = sorted(_held(told.suspects, now_s), key=lambda each: told.suspects[each[1]].last_s)
    return {
        "engineCrashes": told.crashes,
        "requests": [
            {
                "fingerprint": fingerprint.hex(),
                "standing": found.name.capitalize(),
                "tenant": told.suspects[fingerprint].tenant or None,
                "crashes": told.suspects[fingerprint].in_all,
                "crashesBeforeFirstToken": told.suspects[fingerprint].before_token,
                "lastCrashSecondsAgo": round(now_s - told.suspects[fingerprint].last_s),
                "refusedForSeconds": left_s,
            }
            for found, fingerprint, left_s in held
        ],
    }


def _held(suspects: Suspects, now_s: float) -> Iterator[tuple[Standing, bytes, int | None]]:
    """Those that something is held against, and for how much longer they are refused."""
    for fingerprint, suspect in suspects.items():
        found = standing(suspect, now_s)
        if found is not Standing.FREE:
            refused = found is Standing.QUARANTINED
            yield found, fingerprint, round(suspect.free_s - now_s) if refused else None
