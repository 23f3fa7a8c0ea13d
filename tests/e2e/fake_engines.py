"""Metrics of pods on fake nodes: whoever asks such a pod is told what the test says."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from headway_operator.api.labels import METRICS_PORT
from headway_operator.observe.engine_metrics.names import FIELDS, OPTIONAL_FIELDS
from tests.scale.fake_cluster import addresses_of_this_machine

_NOTHING = dict.fromkeys(FIELDS.values(), 0.0)


@contextlib.contextmanager
def telling(token_load: float, step_overhead: float) -> Iterator[None]:
    """Every pod on a fake node tells so much work, whatever else there is."""
    values = {
        **_NOTHING,
        OPTIONAL_FIELDS["token_load"]: token_load,
        OPTIONAL_FIELDS["step_overhead"]: step_overhead,
    }
    body = "".join(f"{name} {value}\n" for name, value in values.items()).encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    with (
        addresses_of_this_machine(),
        ThreadingHTTPServer(("", METRICS_PORT), Handler) as server,
    ):
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
