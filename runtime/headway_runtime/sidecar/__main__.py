"""Runs the sidecar: ``python3 -m headway_runtime.sidecar``.

gunicorn's master is process 1 of the container and keeps the listening sockets; the one worker
serves. When the worker dies, connections wait in the sockets until the next one is up, so that a
probe is late rather than refused and the pod stays ready.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from gunicorn.app.base import BaseApplication

from headway_runtime.sidecar.settings import Settings

_KEEP_ALIVE_SECONDS = 30
"""Longer than the operator keeps an idle connection, so that none is closed under a request."""

_STARVED_SECONDS = 60
"""A worker that is silent for so long hangs. One that gets no time from an engine which uses every
core is silent too, and would take longest of all to be started anew."""


class Supervisor(BaseApplication):  # type: ignore[misc]
    """gunicorn with the sidecar's settings instead of files and flags."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        super().__init__()

    def load_config(self) -> None:
        """Configure gunicorn."""
        settings = self._settings
        options = {
            "bind": [
                f"{settings.address}:{settings.policy_port}",
                f"{settings.address}:{settings.metrics_port}",
                f"unix:{settings.socket}",
            ],
            "workers": 1,
            "worker_class": "aiohttp.GunicornWebWorker",
            # The only place that can be written with a read-only root file system.
            "worker_tmp_dir": str(settings.run_dir),
            "control_socket_disable": True,
            "graceful_timeout": 2,
            "timeout": _STARVED_SECONDS,
            "keepalive": _KEEP_ALIVE_SECONDS,
            "accesslog": None,
            "loglevel": "warning",
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """The application; called in the worker, so that the master stays small."""
        from headway_runtime.sidecar.application import create_application  # noqa: PLC0415

        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        return create_application(self._settings)


if __name__ == "__main__":
    Supervisor(Settings.from_environment(os.environ)).run()
