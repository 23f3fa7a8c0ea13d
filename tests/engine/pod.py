"""An engine and its sidecar as processes on this machine: what a pod runs, without a cluster.

The engine is vLLM itself with a small model, started by the command line that the operator renders,
with the part of Headway that the init container installs. Files in the run directory outlive the
engine's processes, as they do in a pod whose container is started again.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from headway_operator.api.spec import InferenceServiceSpec
from headway_operator.render.arguments import engine_arguments, engine_program
from headway_runtime.install import install
from headway_runtime.policy import Policy
from tests.cluster.lab.engine_environment import VLLM_CACHE
from tests.cluster.lab.model import MODEL_NAME
from tests.cluster.lab.paths import REPOSITORY, Paths
from tests.e2e.waiting import wait_until
from tests.engine.asking import PATIENCE_S, Answer, ask
from tests.engine.processes import STOP_S, kill_group, spawn, stop
from tests.unit.runtime.policies import POD, SERVICE, publish, signed

SERVED_MODEL = "smollm2"
READY_S = 600
_LOG_LINES_SHOWN = 30
_JSON = {"Content-Type": "application/json"}


@dataclass
class Pod:
    """A sidecar, and an engine that may be started again and again.

    Attributes:
        folder: where everything of it is.
        ports: of the engine, and the two of the sidecar.
        flags: further flags of vLLM.
        environment: further variables of the engine.
        libraries: further directories that the engine searches for Python modules.
        exit_code: of the engine that was waited for last.
    """

    folder: Path
    ports: tuple[int, int, int]
    flags: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    libraries: Sequence[Path] = ()
    exit_code: int | None = None
    _engine: subprocess.Popen[bytes] | None = None
    _sidecar: subprocess.Popen[bytes] | None = None

    @property
    def run_dir(self) -> Path:
        """The directory that engine and sidecar share."""
        return self.folder / "run"

    @property
    def log(self) -> str:
        """What the engine has written since it was first started."""
        return (self.folder / "engine.log").read_text(errors="replace")

    @property
    def is_alive(self) -> bool:
        """Whether the engine's first process runs."""
        return self._engine is not None and self._engine.poll() is None

    def start(self, first: Policy) -> None:
        """Start the sidecar with a policy, then the engine, and wait until it answers."""
        self.run_dir.mkdir(exist_ok=True)
        publish(self.folder / "policy", first)
        install(self.folder)
        self._sidecar = spawn(
            [sys.executable, "-m", "headway_runtime.sidecar"],
            self.folder / "sidecar.log",
            {"PYTHONPATH": str(REPOSITORY / "runtime"), **self._sidecar_settings()},
        )
        self._wait(lambda: self.told(2, "/startedz").status == 200, "the sidecar")
        self.start_engine()

    def start_engine(self) -> None:
        """Start the engine, as the kubelet does with a container that has ended."""
        spec = yaml.safe_load((REPOSITORY / "examples" / "chat.yaml").read_text())["spec"]
        spec["engine"]["args"] += self.flags
        service = InferenceServiceSpec.model_validate(spec)
        paths = Paths.from_environment(os.environ)
        model = paths.models / MODEL_NAME
        _, _, *arguments = engine_arguments("chat", service)
        here = ["--model", str(model), *arguments, "--host", "127.0.0.1"]
        libraries = [self.folder / "lib", *self.libraries]
        self._engine = spawn(
            [
                *(sys.executable, "-m", engine_program(service)),
                *here,
                *("--port", str(self.ports[0])),
            ],
            self.folder / "engine.log",
            {
                "PYTHONPATH": os.pathsep.join(map(str, libraries)),
                "HEADWAY_RUN_DIR": str(self.run_dir),
                **{each["name"]: each["value"] for each in spec["engine"]["env"]},
                "VLLM_CACHE_ROOT": str(paths.engine / VLLM_CACHE),
                **self.environment,
            },
        )
        self._wait(self._answers, "the engine")

    def ended(self, timeout_s: float = STOP_S) -> None:
        """Wait until the engine's first process has ended; what is left of it is killed."""
        assert self._engine is not None
        self.exit_code = self._engine.wait(timeout_s)
        kill_group(self._engine)

    def terminate(self) -> None:
        """Tell the engine to end, as the kubelet does after its `preStop`, and wait for that."""
        assert self._engine is not None
        self._engine.terminate()
        self.ended()

    def stop(self) -> None:
        """Stop both."""
        for process in (self._engine, self._sidecar):
            if process is not None:
                stop(process)

    def push(self, policy: Policy) -> None:
        """Send a policy to the sidecar, as the operator does."""
        answer = ask(self._url(1, "/v1/policy"), signed(policy).to_json(), method="PUT")
        assert answer.status == 200, answer

    def ask(
        self,
        document: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
        path: str = "/v1/completions",
    ) -> Answer:
        """Send a request to the engine and wait for its answer."""
        body = json.dumps({"model": SERVED_MODEL, **document}).encode()
        return ask(self._url(0, path), body, {**_JSON, **(headers or {})})

    @contextmanager
    def asking(
        self, document: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> Iterator[None]:
        """A request that has its first token, and whose client goes away in the end."""
        body = json.dumps({"model": SERVED_MODEL, "stream": True, **document}).encode()
        request = urllib.request.Request(
            self._url(0, "/v1/completions"), body, {**_JSON, **(headers or {})}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            response.readline()
            yield

    def told(self, port: int, path: str) -> Answer:
        """What the engine (0) or the sidecar on its port for policies (1) or metrics (2) tells."""
        return ask(self._url(port, path))

    def request(self, name: str) -> dict[str, Any]:
        """What the sidecar tells of the only request with this id, once it has ended."""

        def requests() -> list[dict[str, Any]]:
            document = self.told(1, f"/requests/{name}").document
            return list(document.get("requests", ()))

        (found,) = wait_until(
            requests,
            lambda told: [each for each in told if each["endedAfterSeconds"] is not None],
            timeout_s=30,
            what=f"the history of {name}",
        )
        return found

    def metrics(self) -> dict[tuple[str, ...], float]:
        """The sidecar's metrics, by name and values of labels."""
        text = self.told(2, "/metrics").document
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def _answers(self) -> bool:
        if not self.is_alive:
            raise RuntimeError(f"the engine has ended:\n{self._end_of_log()}")
        return self.told(0, "/health").status == 200

    def _end_of_log(self) -> str:
        return "\n".join(self.log.splitlines()[-_LOG_LINES_SHOWN:])

    def _wait(self, holds: Any, what: str) -> None:
        def attempt() -> bool:
            try:
                return bool(holds())
            except (urllib.error.URLError, OSError, http.client.HTTPException):
                return False

        wait_until(attempt, bool, READY_S, f"an answer of {what}", period_s=0.5)

    def _url(self, port: int, path: str) -> str:
        return f"http://127.0.0.1:{self.ports[port]}{path}"

    def _sidecar_settings(self) -> dict[str, str]:
        return {
            "HEADWAY_RUN_DIR": str(self.run_dir),
            "HEADWAY_POLICY_DIR": str(self.folder / "policy"),
            "HEADWAY_SERVICE_UID": SERVICE,
            "HEADWAY_POD_UID": POD,
            "HEADWAY_POLICY_PORT": str(self.ports[1]),
            "HEADWAY_METRICS_PORT": str(self.ports[2]),
        }


@contextmanager
def running(pod: Pod, first: Policy) -> Iterator[Pod]:
    """The pod with an engine that answers; stopped afterwards."""
    try:
        pod.start(first)
        yield pod
    finally:
        pod.stop()
