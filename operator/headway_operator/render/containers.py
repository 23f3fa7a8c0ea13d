"""The four containers of a pod, in the order in which they start."""

from __future__ import annotations

from typing import Any

from headway_operator.api.labels import (
    ENGINE,
    INSTALL,
    METRICS_PORT,
    POLICY_PORT,
    PREFLIGHT,
    SIDECAR,
)
from headway_operator.api.spec import InferenceServiceSpec
from headway_operator.render.arguments import (
    engine_arguments,
    engine_command,
    preflight_arguments,
)
from headway_operator.render.environment import engine_environment
from headway_operator.render.hashing import present
from headway_operator.render.names import HTTP_PORT, LIBRARY_DIR, POLICY_DIR, RUN_DIR
from headway_operator.render.probes import engine_probes, sidecar_probes
from headway_operator.render.security import container_security_context
from headway_operator.render.volumes import LIBRARY, POLICY, RUN, engine_mounts, mount

_INSTALLED = f"{LIBRARY_DIR}/lib/headway_runtime"

# CPU is not limited: throttling a probe or a policy update would hurt more than it saves.
_INIT_RESOURCES = {
    "requests": {"cpu": "10m", "memory": "64Mi"},
    "limits": {"memory": "512Mi"},
}
# The request is the sidecar's weight against an engine that uses every core: with 10m its probes
# were seen to time out, and the pod became unready.
_SIDECAR_RESOURCES = {
    "requests": {"cpu": "100m", "memory": "96Mi"},
    "limits": {"memory": "256Mi"},
}


def install_container(runtime_image: str) -> dict[str, Any]:
    """Copies the part of Headway that runs inside the engine into a shared volume."""
    return {
        "name": INSTALL,
        "image": runtime_image,
        "command": ["python3", "-m", "headway_runtime.install", LIBRARY_DIR],
        "resources": _INIT_RESOURCES,
        "securityContext": container_security_context(read_only_root=True),
        "terminationMessagePolicy": "File",
        "volumeMounts": [mount(LIBRARY, LIBRARY_DIR)],
    }


def preflight_container(service: str, spec: InferenceServiceSpec) -> dict[str, Any]:
    """Checks vLLM's version, its flags and the model before the engine is tried."""
    script = f"{_INSTALLED}/preflight/check.py"
    return present(
        {
            "name": PREFLIGHT,
            "image": spec.engine.image,
            "imagePullPolicy": spec.engine.image_pull_policy,
            "command": ["python3", "-I", script],
            "args": preflight_arguments(service, spec),
            "env": engine_environment(spec),
            "resources": _INIT_RESOURCES,
            "securityContext": container_security_context(read_only_root=True),
            "terminationMessagePolicy": "File",
            "volumeMounts": engine_mounts(spec),
        }
    )


def sidecar_container(service_uid: str, runtime_image: str) -> dict[str, Any]:
    """Takes policies in and gives metrics out; a native sidecar, so it outlives the engine."""
    environment = {
        "HEADWAY_RUN_DIR": RUN_DIR,
        "HEADWAY_POLICY_DIR": POLICY_DIR,
        "HEADWAY_SERVICE_UID": service_uid,
        "HEADWAY_POLICY_PORT": str(POLICY_PORT),
        "HEADWAY_METRICS_PORT": str(METRICS_PORT),
    }
    pod_uid = {
        "name": "HEADWAY_POD_UID",
        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}},
    }
    return {
        "name": SIDECAR,
        "image": runtime_image,
        "command": ["python3", "-m", "headway_runtime.sidecar"],
        "env": [*({"name": key, "value": value} for key, value in environment.items()), pod_uid],
        "ports": [_port("policy", POLICY_PORT), _port("metrics", METRICS_PORT)],
        "resources": _SIDECAR_RESOURCES,
        "restartPolicy": "Always",
        "securityContext": container_security_context(read_only_root=True),
        "terminationMessagePolicy": "File",
        "volumeMounts": [mount(RUN, RUN_DIR), mount(POLICY, POLICY_DIR, read_only=True)],
        **sidecar_probes(),
    }


def engine_container(service: str, spec: InferenceServiceSpec) -> dict[str, Any]:
    """The user's vLLM, with Headway's scheduler plugged in."""
    engine = spec.engine
    container = {
        "name": ENGINE,
        "image": engine.image,
        "imagePullPolicy": engine.image_pull_policy,
        "command": engine_command(spec),
        "args": engine_arguments(service, spec),
        "env": engine_environment(spec),
        "lifecycle": {"preStop": {"exec": {"command": _drain_command(engine.drain_seconds)}}},
        "ports": [_port("http", HTTP_PORT)],
        "resources": engine.resources.to_kubernetes() if engine.resources else None,
        "securityContext": container_security_context(read_only_root=False),
        "terminationMessagePolicy": "File",
        "volumeMounts": engine_mounts(spec),
        **engine_probes(engine.startup_timeout_seconds),
    }
    return present(container)


def _drain_command(timeout_seconds: int) -> list[str]:
    options = ["--run-dir", RUN_DIR, "--timeout", str(timeout_seconds)]
    return ["python3", "-I", f"{_INSTALLED}/drain.py", *options]


def _port(name: str, port: int) -> dict[str, Any]:
    return {"name": name, "containerPort": port, "protocol": "TCP"}
