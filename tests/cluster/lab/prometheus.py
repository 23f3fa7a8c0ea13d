"""Prometheus: its configuration, its rights, and whether it answers."""

import http.client
import json
from pathlib import Path
from typing import Any

from .addresses import NODE_ADDRESS, PROMETHEUS_PORT
from .credentials import PROMETHEUS_USER
from .files import write_if_changed
from .paths import Paths
from .rbac import cluster_role

COMPONENT = "prometheus"
ROLE = cluster_role(
    COMPONENT,
    PROMETHEUS_USER,
    # All that discovery of role `pod` asks for: it does not read single pods.
    [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}],
)

_TIMEOUT_SECONDS = 2.0
_ANNOTATION = "__meta_kubernetes_pod_annotation_prometheus_io_"


def prometheus_command(paths: Paths) -> list[str | Path]:
    """Write the configuration and return the command that runs Prometheus.

    Its data are in the state, so that a restart keeps them and `down` removes them.
    """
    paths.prometheus_rules.mkdir(parents=True, exist_ok=True)
    file = _configuration_file(paths)
    write_if_changed(file, json.dumps(configuration(paths), indent=1))
    return [
        paths.bin / COMPONENT,
        f"--config.file={file}",
        f"--storage.tsdb.path={paths.prometheus / 'data'}",
        f"--web.listen-address={NODE_ADDRESS}:{PROMETHEUS_PORT}",
        # POST /-/reload reads the rules again.
        "--web.enable-lifecycle",
    ]


def _configuration_file(paths: Paths) -> Path:
    return paths.config / "prometheus.json"


def configuration(paths: Paths) -> dict[str, Any]:
    """The configuration file (JSON is YAML): pods with the usual annotations, once a second.

    Annotations: `prometheus.io/scrape` must be "true" and `prometheus.io/port` a number;
    `prometheus.io/path` is "/metrics" by default. Every series gets the labels `namespace`, `pod`
    and, for pods of an InferenceService, `headway_service`.
    """
    return {
        "global": {
            "scrape_interval": "1s",
            "scrape_timeout": "1s",
            "evaluation_interval": "1s",
        },
        "rule_files": [f"{paths.prometheus_rules}/*.yaml"],
        "scrape_configs": [
            {
                "job_name": "pods",
                "kubernetes_sd_configs": [
                    {"role": "pod", "kubeconfig_file": str(paths.pki / "prometheus.kubeconfig")}
                ],
                "relabel_configs": _relabelling(),
            }
        ],
    }


def _relabelling() -> list[dict[str, Any]]:
    return [
        {
            "action": "keep",
            "source_labels": [f"{_ANNOTATION}scrape", f"{_ANNOTATION}port"],
            "regex": "true;[0-9]+",
        },
        # A pod that has ended keeps its address in its status, where another pod may be by now.
        {
            "action": "drop",
            "source_labels": ["__meta_kubernetes_pod_phase"],
            "regex": "Succeeded|Failed",
        },
        # Discovery makes a target of every declared port, and of every container, init containers
        # included, that declares none. With this address and no label of a container they are all
        # the same target, and Prometheus scrapes equal targets once.
        {
            "source_labels": ["__meta_kubernetes_pod_ip", f"{_ANNOTATION}port"],
            "separator": ":",
            "target_label": "__address__",
        },
        {
            "source_labels": [f"{_ANNOTATION}path"],
            "regex": "(.+)",
            "target_label": "__metrics_path__",
        },
        _copy("__meta_kubernetes_namespace", "namespace"),
        _copy("__meta_kubernetes_pod_name", "pod"),
        _copy("__meta_kubernetes_pod_label_headway_dev_service", "headway_service"),
    ]


def _copy(source: str, target: str) -> dict[str, Any]:
    return {"source_labels": [source], "target_label": target}


def prometheus_answers(paths: Paths) -> bool:
    """Whether this lab's Prometheus answers queries: another one may listen on the same port."""
    connection = http.client.HTTPConnection(NODE_ADDRESS, PROMETHEUS_PORT, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/api/v1/status/flags")
        response = connection.getresponse()
        # 503 while it replays what it wrote before a restart.
        if response.status != http.client.OK:
            return False
        flags = json.load(response)["data"]
    except (OSError, http.client.HTTPException, ValueError):
        return False
    finally:
        connection.close()
    return bool(flags["config.file"] == str(_configuration_file(paths)))
