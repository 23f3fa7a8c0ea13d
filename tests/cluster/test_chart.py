"""The chart: linted, rendered, and every object checked by a real API server."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from headway_operator.api.labels import (
    ACTIVATOR,
    COMPONENT_LABEL,
    ENGINES,
    METRICS_PORT,
    ROUTER,
    SERVICE_LABEL,
)
from headway_operator.render.containers import sidecar_container
from tests.cluster.lab.paths import CLUSTER_DIRECTORY, Paths
from tests.e2e.kube import Cluster, KubectlError
from tests.e2e.stack import CHART

KEY = re.compile(r" *[a-zA-Z]+:")

PROMETHEUS = (
    "prometheus.url=https://prometheus.monitoring:9090/path",
    "prometheus.caSecret.name=prometheus-ca",
    "prometheus.caSecret.key=tls.crt",
    "prometheus.tokenSecret.name=prometheus-token",
)
MONITORING = (
    "monitoring.podMonitor.enabled=true",
    "monitoring.podMonitor.labels.release=prometheus",
    "monitoring.podMonitor.interval=5s",
    "monitoring.rules.enabled=true",
    "monitoring.rules.labels.release=prometheus",
    "monitoring.rules.runbookUrl=https://example.com/runbook.md",
    "monitoring.dashboards.enabled=true",
    "monitoring.dashboards.labels.team=serving",
)
VALUES = {
    "defaults": (),
    "everything set": (
        *PROMETHEUS,
        *MONITORING,
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
        "gpuQuota=8",
        "replicas=2",
        "logFormat=text",
    ),
    "no crds, no rbac": ("crds.enabled=false", "rbac.create=false"),
}


@pytest.fixture(scope="module")
def helm() -> Cluster:
    """Renders without a cluster."""
    return Cluster(Path(os.devnull), Paths.from_environment(os.environ).bin)


@pytest.fixture(scope="module")
def cluster_with_prometheus_operator(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster that knows the Prometheus Operator's resources."""
    text = (CLUSTER_DIRECTORY / "prometheus_operator_schemas.yaml").read_text()
    schemas = yaml.safe_load(text)
    names = []
    for kind, schema in schemas.items():
        definition = custom_resource_definition(kind, schema)
        names.append(definition["metadata"]["name"])
        cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(definition))
    cluster.kubectl("wait", "crd", *names, "--for=condition=Established", "--timeout=60s")
    yield cluster
    cluster.kubectl("delete", "crd", *names, "--ignore-not-found")


def custom_resource_definition(kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    plural, group = f"{kind.lower()}s", "monitoring.coreos.com"
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def render(helm: Cluster, *settings: str) -> list[dict[str, Any]]:
    sets = [part for setting in settings for part in ("--set", setting)]
    text = helm.run("helm", "template", "headway", str(CHART), "--namespace", "default", *sets)
    return [document for document in yaml.safe_load_all(text) if document]


def of_kind(helm: Cluster, kind: str, *settings: str) -> list[dict[str, Any]]:
    return [each for each in render(helm, *settings) if each["kind"] == kind]


def only(objects: list[dict[str, Any]]) -> dict[str, Any]:
    (found,) = objects
    return found


def test_the_chart_passes_helm_lint(helm: Cluster) -> None:
    said = helm.run("helm", "lint", "--strict", str(CHART))
    assert "0 chart(s) failed" in said


@pytest.mark.cluster
@pytest.mark.parametrize("settings", VALUES.values(), ids=VALUES.keys())
def test_every_rendered_object_is_what_the_api_server_expects(
    cluster_with_prometheus_operator: Cluster, settings: tuple[str, ...]
) -> None:
    cluster = cluster_with_prometheus_operator
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
        ("prometheus.url=prometheus:9090", "url"),
        ("prometheus.tokenSecret.key=a/b", "key"),
        ("monitoring.podMonitor.interval=0s", "interval"),
        ("monitoring.podMonitor.interval=often", "interval"),
        ("monitoring.rules.runbookUrl=docs/runbook.md", "runbookUrl"),
    ],
)
def test_a_wrong_value_is_refused_and_named(helm: Cluster, setting: str, named: str) -> None:
    with pytest.raises(KubectlError) as refusal:
        render(helm, setting)
    assert named in str(refusal.value)


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        (("prometheus.tokenSecret.name=token",), "set the URL"),
        (("prometheus.caSecret.name=ca",), "set the URL"),
        (("prometheus.caSecret.name=ca", "prometheus.url=http://prometheus:9090"), "use https://"),
    ],
)
def test_values_that_contradict_each_other_are_refused_with_the_remedy(
    helm: Cluster, settings: tuple[str, ...], remedy: str
) -> None:
    with pytest.raises(KubectlError, match=remedy):
        render(helm, *settings)


def operator_container(deployment: dict[str, Any]) -> dict[str, Any]:
    return only(deployment["spec"]["template"]["spec"]["containers"])


def prometheus_variables(deployment: dict[str, Any]) -> dict[str, str]:
    environment = operator_container(deployment)["env"]
    return {
        each["name"]: each["value"]
        for each in environment
        if each["name"].startswith("HEADWAY_PROMETHEUS_")
    }


def test_the_operator_is_told_the_images_of_the_chart(helm: Cluster) -> None:
    settings = ("runtimeImage.repository=r/runtime", "routerImage.repository=r/router")
    deployment = only(of_kind(helm, "Deployment", *settings, "routerImage.tag=v2"))
    told = {each["name"]: each.get("value") for each in operator_container(deployment)["env"]}
    assert told["HEADWAY_ROUTER_IMAGE"] == "r/router:v2"
    assert str(told["HEADWAY_RUNTIME_IMAGE"]).startswith("r/runtime:")


def test_an_operator_that_waits_for_the_api_server_is_not_ended(helm: Cluster) -> None:
    container = operator_container(only(of_kind(helm, "Deployment")))
    startup, liveness = container["startupProbe"], container["livenessProbe"]
    assert startup["httpGet"] == liveness["httpGet"]
    assert startup["periodSeconds"] * startup["failureThreshold"] >= 3600


def test_without_a_prometheus_the_operator_is_told_of_none(helm: Cluster) -> None:
    deployment = only(of_kind(helm, "Deployment"))
    assert prometheus_variables(deployment) == {}
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    assert "prometheus" not in {each["name"] for each in volumes}


def test_the_operator_reads_token_and_certificates_from_a_directory_that_follows_the_secrets(
    helm: Cluster,
) -> None:
    deployment = only(of_kind(helm, "Deployment", *PROMETHEUS))
    assert prometheus_variables(deployment) == {
        "HEADWAY_PROMETHEUS_URL": "https://prometheus.monitoring:9090/path",
        "HEADWAY_PROMETHEUS_CA_FILE": "/etc/headway/prometheus/ca.crt",
        "HEADWAY_PROMETHEUS_TOKEN_FILE": "/etc/headway/prometheus/token",
    }
    mounts = operator_container(deployment)["volumeMounts"]
    mounted = only([each for each in mounts if each["name"] == "prometheus"])
    assert mounted == {
        "name": "prometheus",
        "mountPath": "/etc/headway/prometheus",
        "readOnly": True,
    }
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    volume = only([each for each in volumes if each["name"] == "prometheus"])
    sources = [each["secret"] for each in volume["projected"]["sources"]]
    assert sources == [
        {"name": "prometheus-ca", "items": [{"key": "tls.crt", "path": "ca.crt"}]},
        {"name": "prometheus-token", "items": [{"key": "token", "path": "token"}]},
    ]


def test_nothing_of_monitoring_is_made_unless_asked_for(helm: Cluster) -> None:
    kinds = {each["kind"] for each in render(helm)}
    assert not kinds & {"PodMonitor", "PrometheusRule", "ConfigMap"}


def test_the_operators_pod_can_be_found_by_its_annotations(helm: Cluster) -> None:
    template = only(of_kind(helm, "Deployment"))["spec"]["template"]
    assert template["metadata"]["annotations"] == {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "8081",
    }
    ports = operator_container({"spec": {"template": template}})["ports"]
    assert {"name": "metrics", "containerPort": 8081} in ports


def pod_monitors(helm: Cluster, *settings: str) -> dict[str, dict[str, Any]]:
    found = of_kind(helm, "PodMonitor", "monitoring.podMonitor.enabled=true", *settings)
    return {each["metadata"]["name"]: each for each in found}


def of_component(component: str) -> dict[str, Any]:
    """The selector of all services' pods of one component."""
    return {
        "matchExpressions": [
            {"key": SERVICE_LABEL, "operator": "Exists"},
            {"key": COMPONENT_LABEL, "operator": "In", "values": [component]},
        ]
    }


def test_routers_are_scraped_apart_from_engines(helm: Cluster) -> None:
    """Rules about engines go by ``headway_service``; routers have none of their metrics."""
    monitor = pod_monitors(helm)["headway-routers"]["spec"]
    assert monitor["selector"] == of_component(ROUTER)
    endpoint = only(monitor["podMetricsEndpoints"])
    assert [each["targetLabel"] for each in endpoint["relabelings"]] == ["headway_router"]


def test_activators_are_scraped_apart_too(helm: Cluster) -> None:
    monitor = pod_monitors(helm)["headway-activators"]["spec"]
    assert monitor["selector"] == of_component(ACTIVATOR)
    endpoint = only(monitor["podMetricsEndpoints"])
    assert [each["targetLabel"] for each in endpoint["relabelings"]] == ["headway_activator"]
    assert endpoint["port"] == "metrics"


def test_engine_pods_are_scraped_where_the_sidecar_exposes_metrics(helm: Cluster) -> None:
    monitor = pod_monitors(helm)["headway-engines"]["spec"]
    assert monitor["namespaceSelector"] == {"any": True}
    assert monitor["selector"] == of_component(ENGINES)
    endpoint = only(monitor["podMetricsEndpoints"])
    ports = {
        each["name"]: each["containerPort"] for each in sidecar_container("uid", "image")["ports"]
    }
    assert ports[endpoint["port"]] == METRICS_PORT
    assert endpoint["interval"] == "1s"


def test_the_series_of_engine_pods_name_their_service(helm: Cluster) -> None:
    endpoint = only(pod_monitors(helm)["headway-engines"]["spec"]["podMetricsEndpoints"])
    # Prometheus writes what is no letter or digit in a label's name as an underscore.
    label = re.sub(r"\W", "_", SERVICE_LABEL)
    assert endpoint["relabelings"] == [
        {
            "sourceLabels": [f"__meta_kubernetes_pod_label_{label}"],
            "targetLabel": "headway_service",
        }
    ]


def test_only_watched_namespaces_are_scraped(helm: Cluster) -> None:
    monitor = pod_monitors(helm, "watchNamespaces={team-a,team-b}")["headway-engines"]["spec"]
    assert monitor["namespaceSelector"] == {"matchNames": ["team-a", "team-b"]}


def test_the_operators_own_monitor_selects_its_pod(helm: Cluster) -> None:
    monitor = pod_monitors(helm)["headway-operator"]["spec"]
    template = only(of_kind(helm, "Deployment"))["spec"]["template"]
    selected = monitor["selector"]["matchLabels"]
    assert selected
    assert selected.items() <= template["metadata"]["labels"].items()
    assert monitor["namespaceSelector"] == {"matchNames": ["default"]}
    assert only(monitor["podMetricsEndpoints"])["port"] == "metrics"


def test_labels_by_which_a_prometheus_selects_are_on_its_objects(helm: Cluster) -> None:
    for kind in ("PodMonitor", "PrometheusRule"):
        found = of_kind(helm, kind, *MONITORING)
        assert found
        assert {each["metadata"]["labels"]["release"] for each in found} == {"prometheus"}


def test_the_rule_object_holds_the_rule_file(helm: Cluster) -> None:
    rules = only(of_kind(helm, "PrometheusRule", "monitoring.rules.enabled=true"))
    assert rules["spec"] == yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())


def test_alerts_link_to_the_runbook_wherever_it_is(helm: Cluster) -> None:
    rules = only(of_kind(helm, "PrometheusRule", *MONITORING))
    links = {
        rule["annotations"]["runbook_url"].partition("#")[0]
        for group in rules["spec"]["groups"]
        for rule in group["rules"]
    }
    assert links == {"https://example.com/runbook.md"}


def test_the_dashboards_are_in_a_config_map_that_grafana_takes_in(helm: Cluster) -> None:
    config_map = only(of_kind(helm, "ConfigMap", *MONITORING))
    assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert config_map["metadata"]["labels"]["team"] == "serving"
    files = {path.name: path for path in (CHART / "files" / "dashboards").glob("*.json")}
    assert files
    assert {f"headway-{name}" for name in files} == set(config_map["data"])
    for name, path in files.items():
        assert json.loads(config_map["data"][f"headway-{name}"]) == json.loads(path.read_text())


def test_the_crd_is_kept_on_uninstall_unless_asked_otherwise(helm: Cluster) -> None:
    def policy(*settings: str) -> str | None:
        crd = only(of_kind(helm, "CustomResourceDefinition", *settings))
        found: str | None = crd["metadata"].get("annotations", {}).get("helm.sh/resource-policy")
        return found

    assert policy() == "keep"
    assert policy("crds.keep=false") is None


def test_the_operator_may_not_read_secrets_nor_delete_anything(helm: Cluster) -> None:
    rules = [rule for each in render(helm) for rule in each.get("rules", [])]
    assert rules
    for rule in rules:
        assert not {"secrets", "*"} & set(rule["resources"]), rule
        assert not {"delete", "deletecollection", "*"} & set(rule["verbs"]), rule


def test_every_value_is_in_the_schema_and_the_other_way_round() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = yaml.safe_load((CHART / "values.schema.json").read_text())
    del schema["properties"]["global"]

    def compare(values: dict[str, Any], part: dict[str, Any], path: str) -> None:
        reference = part.get("$ref", "").removeprefix("#/definitions/")
        part = schema["definitions"][reference] if reference else part
        if "properties" not in part:
            return
        assert set(values) == set(part["properties"]), path
        for key, nested in values.items():
            if isinstance(nested, dict):
                compare(nested, part["properties"][key], f"{path}.{key}")

    compare(values, schema, "")


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
