"""Rules and queries as Prometheus itself reads them: valid, and alerts fire when they should."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.lab.paths import CLUSTER_DIRECTORY, Paths
from tests.e2e.stack import CHART

ALERTS = CHART / "files" / "alerts.yaml"
DASHBOARDS = CHART / "files" / "dashboards"
ALERT_TESTS = CLUSTER_DIRECTORY / "alerts_test.yaml"


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    tool = Paths.from_environment(os.environ).bin / "promtool"
    return subprocess.run(
        [tool, *arguments], capture_output=True, text=True, check=False, timeout=120
    )


def test_the_rule_file_is_one_that_prometheus_loads() -> None:
    checked = promtool("check", "rules", "--lint=all", "--lint-fatal", ALERTS)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_each_alert_fires_where_it_should_and_only_there() -> None:
    tested = promtool("test", "rules", ALERT_TESTS)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def expectations() -> dict[str, list[list[Any]]]:
    """What is expected of each alert, by its name."""
    found: dict[str, list[list[Any]]] = {}
    for case in yaml.safe_load(ALERT_TESTS.read_text())["tests"]:
        for each in case.get("alert_rule_test", ()):
            found.setdefault(each["alertname"], []).append(each["exp_alerts"])
    return found


def test_no_alert_goes_untested() -> None:
    rules = [
        rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]
    ]
    expected = expectations()
    assert set(expected) == {rule["alert"] for rule in rules}
    assert all(any(cases) for cases in expected.values())


def test_prometheus_understands_every_query_of_the_dashboards(tmp_path: Path) -> None:
    variables = {"$namespace": "a", "$service": "b", "$__rate_interval": "1m", "$__range": "1h"}
    rules = []
    for path in DASHBOARDS.glob("*.json"):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel.get("targets", ()):
                expr = target["expr"]
                for name, value in variables.items():
                    expr = expr.replace(name, value)
                rules.append({"record": f"query_{len(rules)}", "expr": expr})
    assert rules
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    checked = promtool("check", "rules", file)
    assert checked.returncode == 0, checked.stdout + checked.stderr
