"""An HTTP server that answers for as long as a test needs it."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self


class Serving:
    """Answers in a thread of its own, on a free port.

    Args:
        address: where it listens.
        handler: what answers.
    """

    def __init__(self, address: str, handler: type[BaseHTTPRequestHandler]) -> None:
        self._server = ThreadingHTTPServer((address, 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def port(self) -> int:
        """Its port."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        """Begin to answer."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Be gone."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
