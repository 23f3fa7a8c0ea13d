"""The local cluster's Prometheus, asked as a dashboard would."""

from __future__ import annotations

import json
import os
import shutil
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.lab.addresses import PROMETHEUS_URL
from tests.cluster.lab.paths import Paths

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
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:
            result = json.load(answer)["data"]["result"]
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
        with urllib.request.urlopen(f"{self.url}/api/v1/rules", timeout=_TIMEOUT_S) as answer:
            groups = json.load(answer)["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def load_rules(self, file: Path) -> None:
        """Have a file of rules evaluated from now on."""
        directory = Paths.from_environment(os.environ).prometheus_rules
        shutil.copy(file, directory / file.name)
        request = urllib.request.Request(f"{self.url}/-/reload", method="POST")
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S):
            pass

    def wait_for(self, text: str, timeout_s: float) -> float:
        """Wait until an expression has a series.

        Raises:
            TimeoutError: it had none all the time.
        """
        deadline = time.monotonic() + timeout_s
        while (value := self.value(text)) is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"Prometheus has nothing for {text}")
            time.sleep(0.5)
        return value
