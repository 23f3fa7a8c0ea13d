"""The lab's Prometheus: which pods it scrapes, judged by Prometheus' own promtool."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.lab.build import build_tools
from tests.cluster.lab.paths import Paths
from tests.cluster.lab.progress import Progress
from tests.cluster.lab.prometheus import configuration, prometheus_command

META = "__meta_kubernetes_"
SCRAPED = {"prometheus_io_scrape": "true", "prometheus_io_port": "8901"}


@pytest.fixture(scope="session")
def promtool() -> Path:
    paths = Paths.from_environment(os.environ)
    build_tools(paths, Progress(), {"prometheus"})
    return paths.bin / "promtool"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    paths = Paths(cache=tmp_path / "cache", state=tmp_path / "state")
    paths.config.mkdir(parents=True)
    paths.pki.mkdir()
    (paths.pki / "prometheus.kubeconfig").write_text("{}")
    return paths


def discovered(
    annotations: dict[str, str], *addresses: str, phase: str = "Running", **labels: str
) -> dict[str, Any]:
    """What discovery says of a pod: one target for each address (container port, or container)."""
    pod = {f"{META}pod_annotation_{name}": value for name, value in annotations.items()}
    pod |= {f"{META}pod_label_{name}": value for name, value in labels.items()}
    pod |= {f"{META}namespace": "team-a", f"{META}pod_name": "chat-0"}
    pod |= {f"{META}pod_ip": "10.244.0.9", f"{META}pod_phase": phase}
    return {"targets": list(addresses or ("10.244.0.9:8901",)), "labels": pod}


def scraped(promtool: Path, paths: Paths, group: dict[str, Any]) -> list[dict[str, str]]:
    """The different targets that are left of a discovered pod, with their labels."""
    document = configuration(paths)
    (job,) = document["scrape_configs"]
    del job["kubernetes_sd_configs"]
    job["static_configs"] = [group]
    file = paths.config / "static.json"
    file.write_text(json.dumps(document))
    command = [promtool, "check", "service-discovery", "--timeout=3s", file, job["job_name"]]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    results = json.loads(done.stdout)
    assert results, done.stderr
    kept = {tuple(sorted(result["labels"].items())) for result in results if result["labels"]}
    return [dict(labels) for labels in kept]


def test_promtool_accepts_the_configuration_with_and_without_rules(
    promtool: Path, paths: Paths
) -> None:
    prometheus_command(paths)
    check = [promtool, "check", "config", paths.config / "prometheus.json"]
    subprocess.run(check, capture_output=True, check=True)
    rule = paths.prometheus_rules / "broken.yaml"
    rule.write_text("groups: [{name: a, rules: [{alert: b, expr: '('}]}]")
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.run(check, capture_output=True, check=True)


def test_it_listens_on_the_nodes_address_only(paths: Paths) -> None:
    flags = [str(part) for part in prometheus_command(paths)]
    listeners = [flag for flag in flags if flag.startswith("--web.listen-address")]
    assert listeners == ["--web.listen-address=172.31.255.1:9090"]


def test_a_pod_is_one_target_however_many_containers_and_ports_it_has(
    promtool: Path, paths: Paths
) -> None:
    ip = "10.244.0.9"
    # The engine's port, two init containers without any, and the sidecar's two.
    addresses = (f"{ip}:8000", ip, ip, f"{ip}:8900", f"{ip}:8901")
    group = discovered(SCRAPED, *addresses, headway_dev_service="chat")
    (target,) = scraped(promtool, paths, group)
    scheme, address, path = "__scheme__", "__address__", "__metrics_path__"
    url = f"{target[scheme]}://{target[address]}{target[path]}"
    assert url == "http://10.244.0.9:8901/metrics"
    assert {name: value for name, value in target.items() if not name.startswith("__")} == {
        "headway_service": "chat",
        "instance": "10.244.0.9:8901",
        "job": "pods",
        "namespace": "team-a",
        "pod": "chat-0",
    }


def test_a_pod_of_no_service_is_scraped_without_that_label(promtool: Path, paths: Paths) -> None:
    (target,) = scraped(promtool, paths, discovered(SCRAPED))
    assert "headway_service" not in target


def test_the_path_may_be_another_one(promtool: Path, paths: Paths) -> None:
    group = discovered({**SCRAPED, "prometheus_io_path": "/other"})
    assert [target["__metrics_path__"] for target in scraped(promtool, paths, group)] == ["/other"]


@pytest.mark.parametrize(
    "group",
    [
        discovered({}),
        discovered({**SCRAPED, "prometheus_io_scrape": "false"}),
        discovered({"prometheus_io_scrape": "true"}),
        discovered({**SCRAPED, "prometheus_io_port": "metrics"}),
        discovered(SCRAPED, phase="Succeeded"),
        discovered(SCRAPED, phase="Failed"),
    ],
    ids=["not annotated", "not wanted", "no port", "no number", "succeeded", "failed"],
)
def test_other_pods_are_left_alone(promtool: Path, paths: Paths, group: dict[str, Any]) -> None:
    assert scraped(promtool, paths, group) == []
