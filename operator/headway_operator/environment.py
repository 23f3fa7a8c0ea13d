"""The operator's configuration: environment variables, checked once at the start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

LOG_FORMATS = ("text", "json")

VARIABLES = """\
environment variables:
  HEADWAY_NAMESPACE         namespace the operator runs in (downward API: metadata.namespace)
  HEADWAY_RUNTIME_IMAGE     image of sidecar and plug-in for services that do not pin one
  HEADWAY_ROUTER_IMAGE      image with vllm-router for services with a router that name none
  HEADWAY_SIGNING_KEY_DIR   directory with current.pem (Ed25519) and, while keys are rotated,
                            previous.pem
  HEADWAY_WATCH_NAMESPACES  namespaces to serve, separated by commas; all when empty
  HEADWAY_PROMETHEUS_URL    Prometheus to read the engines' metrics from; when empty, and while
                            it does not answer, the pods are asked themselves
  HEADWAY_PROMETHEUS_CA_FILE     certificates to trust for it instead of the system's
  HEADWAY_PROMETHEUS_TOKEN_FILE  file with the bearer token for it
  HEADWAY_GPU_QUOTA         GPUs that the pods of all services may use together, divided by
                            spec.scaling.priority; no limit when empty
  HEADWAY_LOG_FORMAT        text or json; text when empty

ports:
  8080  /healthz, for the liveness probe
  8081  /metrics, for Prometheus
"""


class EnvironmentVariableError(Exception):
    """A variable is missing or wrong; the message names it and the remedy."""


@dataclass(frozen=True)
class PrometheusAccess:
    """How Prometheus is reached.

    Attributes:
        url: of its HTTP interface.
        ca_file: certificates to trust instead of the system's.
        token_file: file with the bearer token.
    """

    url: str
    ca_file: Path | None = None
    token_file: Path | None = None


@dataclass(frozen=True)
class Environment:
    """What the operator is told from outside.

    Attributes:
        namespace: where it runs.
        runtime_image: Headway's image for services that do not pin one.
        router_image: image with vllm-router, likewise.
        signing_key_dir: where its private keys are mounted.
        watch_namespaces: the namespaces it serves; all when empty.
        log_format: ``text`` or ``json``.
        gpu_quota: GPUs that all services may use together; None without a limit.
        prometheus: where metrics are read from; None when there is no Prometheus.
    """

    namespace: str
    runtime_image: str
    router_image: str
    signing_key_dir: Path
    watch_namespaces: tuple[str, ...]
    log_format: str
    prometheus: PrometheusAccess | None = None
    gpu_quota: int | None = None

    @classmethod
    def read(cls, variables: Mapping[str, str]) -> Environment:
        """Read and check the variables.

        Raises:
            EnvironmentVariableError: one is missing or wrong.
        """
        log_format = variables.get("HEADWAY_LOG_FORMAT") or LOG_FORMATS[0]
        if log_format not in LOG_FORMATS:
            raise EnvironmentVariableError(
                f"HEADWAY_LOG_FORMAT is {log_format!r}: set it to {' or '.join(LOG_FORMATS)}"
            )
        watched = variables.get("HEADWAY_WATCH_NAMESPACES", "").split(",")
        return cls(
            namespace=_required(
                variables, "HEADWAY_NAMESPACE", "the namespace the operator runs in"
            ),
            runtime_image=_required(variables, "HEADWAY_RUNTIME_IMAGE", "Headway's runtime image"),
            router_image=_required(
                variables, "HEADWAY_ROUTER_IMAGE", "an image with the package vllm-router"
            ),
            signing_key_dir=Path(
                _required(
                    variables, "HEADWAY_SIGNING_KEY_DIR", "the directory that holds current.pem"
                )
            ),
            watch_namespaces=tuple(sorted({name.strip() for name in watched} - {""})),
            log_format=log_format,
            prometheus=_prometheus(variables),
            gpu_quota=_gpu_quota(variables),
        )


def _prometheus(variables: Mapping[str, str]) -> PrometheusAccess | None:
    url = variables.get("HEADWAY_PROMETHEUS_URL", "").strip()
    ca_file, token_file = (
        _file(variables, f"HEADWAY_PROMETHEUS_{name}_FILE") for name in ("CA", "TOKEN")
    )
    if url:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            # The value itself is not repeated: it may hold a password.
            raise EnvironmentVariableError(
                "HEADWAY_PROMETHEUS_URL must look like http://prometheus.monitoring:9090"
            )
        return PrometheusAccess(url, ca_file, token_file)
    if ca_file or token_file:
        raise EnvironmentVariableError("HEADWAY_PROMETHEUS_URL is not set, though its files are")
    return None


def _gpu_quota(variables: Mapping[str, str]) -> int | None:
    text = variables.get("HEADWAY_GPU_QUOTA", "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit()):
        raise EnvironmentVariableError("HEADWAY_GPU_QUOTA must be a number of GPUs, 0 or more")
    return int(text)


def _file(variables: Mapping[str, str], name: str) -> Path | None:
    value = variables.get(name, "").strip()
    return Path(value) if value else None


def _required(variables: Mapping[str, str], name: str, meaning: str) -> str:
    value = variables.get(name, "").strip()
    if not value:
        raise EnvironmentVariableError(f"{name} is not set: set it to {meaning}")
    return value
