"""The chart: linted, rendered, and every object checked by a real API server."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from tests.e2e.kube import Cluster, KubectlError
from tests.e2e.stack import CHART

pytestmark = pytest.mark.cluster

KEY = re.compile(r" *[a-zA-Z]+:")

VALUES = {
    "defaults": (),
    "everything set": (
        "watchNamespaces={team-a,team-b}",
        "signingKey.existingSecret=key",
        "serviceAccount.create=false",
        "serviceAccount.name=robot",
        "imagePullSecrets[0].name=registry",
        "priorityClassName=system-cluster-critical",
        "podLabels.team=serving",
        "podAnnotations.note=yes",
        "nodeSelector.pool=system",
        "crds.keep=false",
        "replicas=2",
        "logFormat=text",
    ),
    "no crds, no rbac": ("crds.enabled=false", "rbac.create=false"),
}


def render(cluster: Cluster, *settings: str) -> list[dict[str, Any]]:
    sets = [part for setting in settings for part in ("--set", setting)]
    text = cluster.run("helm", "template", "headway", str(CHART), "--namespace", "default", *sets)
    return [document for document in yaml.safe_load_all(text) if document]


def test_the_chart_passes_helm_lint(cluster: Cluster) -> None:
    said = cluster.run("helm", "lint", "--strict", str(CHART))
    assert "0 chart(s) failed" in said


@pytest.mark.parametrize("settings", VALUES.values(), ids=VALUES.keys())
def test_every_rendered_object_is_what_the_api_server_expects(
    cluster: Cluster, settings: tuple[str, ...]
) -> None:
    documents = render(cluster, *settings)
    for namespace in ("team-a", "team-b"):
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(manifest))
    for document in documents:
        cluster.kubectl(
            *("apply", "--dry-run=server", "--validate=strict", "-f", "-"),
            stdin=yaml.safe_dump(document),
        )


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("replica=2", "replica"),
        ("replicas=many", "replicas"),
        ("logFormat=xml", "logFormat"),
        ("image.repository=", "repository"),
        ("crds.enable=true", "enable"),
    ],
)
def test_a_wrong_value_is_refused_and_named(cluster: Cluster, setting: str, named: str) -> None:
    with pytest.raises(KubectlError) as refusal:
        render(cluster, setting)
    assert named in str(refusal.value)


def test_the_crd_is_kept_on_uninstall_unless_asked_otherwise(cluster: Cluster) -> None:
    def policy(*settings: str) -> str | None:
        (crd,) = (
            each
            for each in render(cluster, *settings)
            if each["kind"] == "CustomResourceDefinition"
        )
        found: str | None = crd["metadata"].get("annotations", {}).get("helm.sh/resource-policy")
        return found

    assert policy() == "keep"
    assert policy("crds.keep=false") is None


def test_the_operator_may_not_read_secrets_nor_delete_anything(cluster: Cluster) -> None:
    rules = [rule for each in render(cluster) for rule in each.get("rules", [])]
    assert rules
    for rule in rules:
        assert not {"secrets", "*"} & set(rule["resources"]), rule
        assert not {"delete", "deletecollection", "*"} & set(rule["verbs"]), rule


def test_every_value_is_in_the_schema_and_the_other_way_round() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = yaml.safe_load((CHART / "values.schema.json").read_text())
    assert set(values) == set(schema["properties"]) - {"global"}
    for key, nested in values.items():
        if isinstance(nested, dict) and "properties" in schema["properties"][key]:
            assert set(nested) == set(schema["properties"][key]["properties"]), key


def test_the_charts_crd_is_the_generated_one() -> None:
    repository = CHART.parent.parent
    name = "inferenceservices.headway.dev.yaml"
    assert (CHART / "files" / name).read_text() == (repository / "crds" / name).read_text()


def test_every_value_has_a_comment() -> None:
    lines = (CHART / "values.yaml").read_text().splitlines()
    keys = [number for number, line in enumerate(lines) if KEY.match(line)]
    assert len(keys) > 20
    uncommented = [lines[n] for n in keys if n == 0 or not lines[n - 1].strip().startswith("#")]
    assert uncommented == []
