"""Alerts: each one explained, with a section in the runbook, on metrics that exist."""

from __future__ import annotations

import re

import pytest

from tests.unit.observability.documents import (
    RUNBOOK,
    alerts,
    documented_samples,
    named_metrics,
)

ALERTS = alerts()
_BY = re.compile(r"\bby \(([^)]*)\)")
_ANNOTATION_LABEL = re.compile(r"\$labels\.(\w+)")


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_tells_how_bad_it_is_and_what_it_is(name: str) -> None:
    rule = ALERTS[name]
    assert rule["labels"]["severity"] in {"warning", "critical"}
    summary, description = rule["annotations"]["summary"], rule["annotations"]["description"]
    assert summary.endswith(".")
    assert description.endswith(".")
    assert summary != description


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_waits_before_it_fires(name: str) -> None:
    assert re.fullmatch(r"[1-9]\d*m", ALERTS[name]["for"])


def runbook_sections() -> dict[str, str]:
    parts = RUNBOOK.read_text().split("\n## ")[1:]
    return {title: text for title, _, text in (part.partition("\n") for part in parts)}


def test_the_runbook_has_a_section_for_each_alert_and_no_other() -> None:
    assert set(runbook_sections()) == set(ALERTS)


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_links_to_its_section(name: str) -> None:
    assert ALERTS[name]["annotations"]["runbook_url"] == f"docs/runbook.md#{name.lower()}"


@pytest.mark.parametrize("name", ALERTS)
def test_a_section_says_what_it_means_where_to_look_and_what_to_do(name: str) -> None:
    text = runbook_sections()[name]
    assert "**Meaning.**" in text
    assert re.search(r"\*\*Look at\*\*", text)
    assert re.search(r"\*\*(Do\.|do)\*\*", text)


def test_the_runbook_names_only_metrics_that_exist() -> None:
    text = RUNBOOK.read_text().replace("^headway_", "")
    assert named_metrics(text) <= documented_samples()


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_asks_only_for_metrics_that_exist(name: str) -> None:
    named = named_metrics(ALERTS[name]["expr"])
    assert named
    assert named <= documented_samples()


@pytest.mark.parametrize("name", ALERTS)
def test_the_text_of_an_alert_uses_only_labels_that_its_series_have(name: str) -> None:
    rule = ALERTS[name]
    used = set(_ANNOTATION_LABEL.findall(" ".join(rule["annotations"].values())))
    kept = [set(re.split(r",\s*", each)) for each in _BY.findall(rule["expr"])]
    for labels in kept or [{"namespace", "pod", "headway_service"}]:
        assert used <= labels
