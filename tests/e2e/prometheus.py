"""The local cluster's Prometheus, asked as a dashboard would."""

from __future__ import annotations

import json
import os
import shutil
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.lab.addresses import PROMETHEUS_URL
from tests.cluster.lab.paths import Paths
from tests.e2e.waiting import patiently, wait_until

_TIMEOUT_S = 30


@dataclass(frozen=True)
class Sample:
    """One series of an answer."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True)
class Prometheus:
    """Its HTTP interface."""

    url: str = PROMETHEUS_URL

    def query(self, text: str) -> list[Sample]:
        """Evaluate an expression now."""
        parameters = urllib.parse.urlencode({"query": text})
        url = f"{self.url}/api/v1/query?{parameters}"
        result = _answer(url)["result"]
        return [Sample(each["metric"], float(each["value"][1])) for each in result]

    def value(self, text: str) -> float | None:
        """The value of an expression with one series; None while it has none."""
        found = self.query(text)
        return found[0].value if found else None

    def by_label(self, text: str, label: str) -> dict[str, float]:
        """The values of an expression by one label."""
        return {each.labels.get(label, ""): each.value for each in self.query(text)}

    def rules(self) -> list[dict[str, Any]]:
        """The alert rules that are loaded, with their health."""
        groups = _answer(f"{self.url}/api/v1/rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def load_rules(self, file: Path) -> None:
        """Have a file of rules evaluated from now on."""
        directory = Paths.from_environment(os.environ).prometheus_rules
        shutil.copy(file, directory / file.name)
        request = urllib.request.Request(f"{self.url}/-/reload", method="POST")
        patiently(lambda: urllib.request.urlopen(request, timeout=_TIMEOUT_S).close())

    def wait_for(self, text: str, timeout_s: float) -> float:
        """Wait until an expression has a series.

        Raises:
            TimeoutError: it had none all the time.
        """
        found = wait_until(
            lambda: self.query(text), bool, timeout_s, f"a series of {text}", period_s=0.5
        )
        return found[0].value


def _answer(url: str) -> dict[str, Any]:
    """What Prometheus answers to a query, asked a few times where it does not."""

    def attempt() -> dict[str, Any]:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:
            return dict(json.load(answer)["data"])

    return patiently(attempt)
