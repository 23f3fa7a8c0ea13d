"""What the documents, the rule file and the dashboard say, read for the tests to compare."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).resolve().parents[3]
ALERTS = REPOSITORY / "charts" / "headway" / "files" / "alerts.yaml"
DASHBOARD = REPOSITORY / "charts" / "headway" / "files" / "dashboards" / "service-overview.json"
METRICS = REPOSITORY / "docs" / "metrics.md"
RUNBOOK = REPOSITORY / "docs" / "runbook.md"

_ROW = re.compile(r"\| `(headway_\w+)` \| (\w+) \|([^|]*)\| ([^|]+) \|")
_NAME = re.compile(r"\bheadway_\w+")
_TARGET_LABELS = {"headway_service", "headway_activator"}
_SAMPLES = {
    "counter": ("",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
}


@dataclass(frozen=True)
class Documented:
    """A metric as docs/metrics.md describes it.

    Attributes:
        name: as Prometheus shows it, without a histogram's suffixes.
        type: counter, gauge or histogram.
        labels: their names.
        values: by label, those that are listed.
    """

    name: str
    type: str
    labels: tuple[str, ...]
    values: tuple[tuple[str, tuple[str, ...]], ...]

    def samples(self) -> set[str]:
        """Names of its series."""
        return {self.name + suffix for suffix in _SAMPLES[self.type]}


def documented_metrics() -> dict[str, Documented]:
    """By name; a line of the tables that is not understood is an error."""
    lines = [line for line in METRICS.read_text().splitlines() if line.startswith("| `")]
    metrics = [_documented(line) for line in lines]
    assert len({each.name for each in metrics}) == len(metrics) > 0
    return {each.name: each for each in metrics}


def _documented(line: str) -> Documented:
    row = _ROW.fullmatch(line)
    assert row, line
    name, kind, labels, _ = row.groups()
    parts = [part.partition(":") for part in labels.split(";") if part.strip()]
    values = {
        label.strip(): tuple(each.strip() for each in listed.split(",") if each.strip())
        for label, _, listed in parts
    }
    return Documented(name, kind, tuple(values), tuple(values.items()))


def documented_samples() -> set[str]:
    """Names of all documented series."""
    return set().union(*(each.samples() for each in documented_metrics().values()))


def named_metrics(expr: str) -> set[str]:
    """Names of Headway's series in a PromQL expression."""
    return set(_NAME.findall(expr)) - _TARGET_LABELS


def alerts() -> dict[str, dict[str, Any]]:
    """The alerting rules by name."""
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    by_name = {rule["alert"]: rule for rule in rules}
    assert len(by_name) == len(rules) > 0
    return by_name


def dashboard() -> dict[str, Any]:
    """The dashboard that the chart ships."""
    return dict(json.loads(DASHBOARD.read_text()))


def panels() -> dict[str, dict[str, Any]]:
    """The dashboard's panels by title, rows left out."""
    found = [panel for panel in dashboard()["panels"] if panel["type"] != "row"]
    by_title = {panel["title"]: panel for panel in found}
    assert len(by_title) == len(found) > 0
    return by_title
