"""What vLLM does not do at the end of an engine that has several API servers.

With one, SIGTERM lets what is under way finish within ``--shutdown-timeout``, and an engine that
dies takes its API server with it within a second. With several, the process above them tells all of
them to end, and they cut off whatever is under way and then wait for its clients: until the
time-out, or for 5 s, while whoever connects is kept waiting too. Seen with vLLM 0.32; the sources
of 0.26 are the same there. So that process waits before it tells them, and does not wait for long
once there is no engine.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from headway_runtime.drain import is_busy, wait_until_idle

RUN_DIR_VARIABLE = "HEADWAY_RUN_DIR"

_TRACES_VARIABLE = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
"""By this an engine knows that it is traced. An API server tells that the engine that it starts; of
several none starts it."""

LAST_WORDS_S = 1.0
"""So long API servers may tell their clients that the engine has died. Those that know end then."""


class Tending:
    """The process above several API servers.

    Args:
        serve: vLLM's module of the command ``serve``.
    """

    def __init__(self, serve: ModuleType) -> None:
        self._run = serve.run_multi_api_server
        self._wait = serve.wait_for_completion_or_failure
        self._timeout_s = 0.0

    def run(self, args: Any) -> None:
        """``run_multi_api_server``."""
        self._timeout_s = float(getattr(args, "shutdown_timeout", None) or 0)
        traces = getattr(args, "otlp_traces_endpoint", None)
        if traces:
            os.environ[_TRACES_VARIABLE] = traces
        self._run(args)

    def wait(self, api_server_manager: Any, **others: Any) -> None:
        """``wait_for_completion_or_failure``: what comes after it ends everything."""
        try:
            self._wait(api_server_manager=api_server_manager, **others)
        except SystemExit:
            # It is what vLLM makes of SIGTERM.
            if not self._has_finished():
                _end(api_server_manager, 0.0)
            raise
        except Exception:
            _end(api_server_manager, LAST_WORDS_S)
            raise

    def _has_finished(self) -> bool:
        """Let what is under way finish; whether it has."""
        run_dir = os.environ.get(RUN_DIR_VARIABLE)
        if run_dir is None:
            return True
        return wait_until_idle(lambda: is_busy(Path(run_dir)), self._timeout_s, least_s=0.0)


def tend(serve: ModuleType) -> None:
    """Have the command ``serve`` end its API servers so; where it works otherwise, as it does."""
    names = ("run_multi_api_server", "wait_for_completion_or_failure")
    if not all(hasattr(serve, name) for name in names):
        return
    tending = Tending(serve)
    for name, ours in zip(names, (tending.run, tending.wait), strict=True):
        setattr(serve, name, ours)


def _end(manager: Any, patience_s: float) -> None:
    """End all API servers, whose manager vLLM's ``APIServerProcessManager`` is.

    Nobody is to connect to a socket on which nobody listens: it is shared with the manager.
    """
    listens = getattr(manager, "sock", None)
    if listens is not None:
        listens.close()
    until_s = time.monotonic() + patience_s
    for each in manager.processes:
        each.join(max(0.0, until_s - time.monotonic()))
    for each in manager.processes:
        if each.is_alive():
            each.kill()
