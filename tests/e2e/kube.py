"""The cluster as the tests and the demo see it: through kubectl, as a user does."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.lab.kubectl import LOST_CONNECTION

_TRIES = 4


class KubectlError(RuntimeError):
    """kubectl refused; the message is what it printed to a user."""


class _ConnectionLostError(KubectlError):
    """kubectl never heard from the API server, or does not end."""


@dataclass(frozen=True)
class Cluster:
    """A cluster reached with one kubeconfig.

    Attributes:
        kubeconfig: of a cluster administrator.
        bin_directory: where kubectl and helm are.
    """

    kubeconfig: Path
    bin_directory: Path

    def environment(self) -> dict[str, str]:
        """What kubectl and helm need, on top of this process's environment."""
        path = f"{self.bin_directory}:{os.environ.get('PATH', '')}"
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig), "PATH": path}

    def run(self, *argv: str, stdin: str | None = None, timeout_s: float = 120) -> str:
        """Run kubectl or helm to completion and return what it printed.

        A connection that was lost on a busy machine is tried again; after ``timeout_s``, as where
        the program did not end, for the last time.

        Raises:
            KubectlError: it exited with an error, or not at all.
        """
        deadline = time.monotonic() + timeout_s
        for number in range(1, _TRIES):
            with contextlib.suppress(_ConnectionLostError):
                return self._run_once(argv, stdin, timeout_s)
            if time.monotonic() > deadline:
                break
            time.sleep(number)
        return self._run_once(argv, stdin, timeout_s)

    def _run_once(self, argv: tuple[str, ...], stdin: str | None, timeout_s: float) -> str:
        try:
            done = subprocess.run(
                argv,
                input=stdin,
                env=self.environment(),
                capture_output=True,
                text=True,
                check=False,
                timeout=timeout_s,
            )
        except subprocess.TimeoutExpired as error:
            text = f"`{' '.join(argv)}` did not end in {timeout_s:.0f} s"
            raise _ConnectionLostError(text) from error
        if done.returncode != 0:
            said = done.stderr.strip() or done.stdout.strip()
            lost = any(text in said for text in LOST_CONNECTION)
            raise _ConnectionLostError(said) if lost else KubectlError(said)
        return done.stdout

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout_s: float = 120) -> str:
        """Run kubectl; see :meth:`run`."""
        return self.run("kubectl", *arguments, stdin=stdin, timeout_s=timeout_s)

    def get(self, kind: str, name: str, namespace: str) -> dict[str, Any]:
        """One object."""
        text = self.kubectl("get", kind, name, "-n", namespace, "-o", "json")
        return dict(json.loads(text))

    def list(self, kind: str, namespace: str, selector: str = "") -> list[dict[str, Any]]:
        """All objects of a kind in a namespace."""
        text = self.kubectl("get", kind, "-n", namespace, "-l", selector, "-o", "json")
        return list(json.loads(text)["items"])

    def apply(self, text: str, namespace: str) -> str:
        """``kubectl apply`` of a document."""
        return self.kubectl("apply", "-n", namespace, "-f", "-", stdin=text)

    def patch(self, kind: str, name: str, namespace: str, change: Mapping[str, Any]) -> None:
        """A merge patch, as ``kubectl patch`` sends it."""
        self.kubectl("patch", kind, name, "-n", namespace, "--type=merge", "-p", json.dumps(change))

    @contextlib.contextmanager
    def proxy(self) -> Iterator[str]:
        """``kubectl proxy`` on a free loopback port; gives the API server's address through it."""
        with subprocess.Popen(
            ["kubectl", "proxy", "--port=0"],
            env=self.environment(),
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                found = re.search(r"127\.0\.0\.1:\d+", line)
                if found is None:
                    raise KubectlError(f"kubectl proxy did not start: {line.strip()}")
                yield f"http://{found.group()}"
            finally:
                process.terminate()
