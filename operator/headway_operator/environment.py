"""The operator's configuration: environment variables, checked once at the start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LOG_FORMATS = ("text", "json")

VARIABLES = """\
environment variables:
  HEADWAY_NAMESPACE         namespace the operator runs in (downward API: metadata.namespace)
  HEADWAY_RUNTIME_IMAGE     image of sidecar and plug-in for services that do not pin one
  HEADWAY_SIGNING_KEY_DIR   directory with current.pem (Ed25519) and, while keys are rotated,
                            previous.pem
  HEADWAY_WATCH_NAMESPACES  namespaces to serve, separated by commas; all when empty
  HEADWAY_LOG_FORMAT        text or json; text when empty

ports:
  8080  /healthz, for the liveness probe
  8081  /metrics, for Prometheus
"""


class EnvironmentVariableError(Exception):
    """A variable is missing or wrong; the message names it and the remedy."""


@dataclass(frozen=True)
class Environment:
    """What the operator is told from outside.

    Attributes:
        namespace: where it runs.
        runtime_image: Headway's image for services that do not pin one.
        signing_key_dir: where its private keys are mounted.
        watch_namespaces: the namespaces it serves; all when empty.
        log_format: ``text`` or ``json``.
    """

    namespace: str
    runtime_image: str
    signing_key_dir: Path
    watch_namespaces: tuple[str, ...]
    log_format: str

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
            signing_key_dir=Path(
                _required(
                    variables, "HEADWAY_SIGNING_KEY_DIR", "the directory that holds current.pem"
                )
            ),
            watch_namespaces=tuple(sorted({name.strip() for name in watched} - {""})),
            log_format=log_format,
        )


def _required(variables: Mapping[str, str], name: str, meaning: str) -> str:
    value = variables.get(name, "").strip()
    if not value:
        raise EnvironmentVariableError(f"{name} is not set: set it to {meaning}")
    return value
