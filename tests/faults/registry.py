"""An image registry that has no images."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler

from tests.faults.serving import Serving


class EmptyRegistry(Serving):
    """Answers as a registry does of which nothing was pushed to; on loopback, without TLS.

    Attributes:
        asked: paths that were asked for.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.rstrip("/") == "/v2":
                    self._answer(200, {})
                else:
                    asked.append(self.path)
                    error = {"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}
                    self._answer(404, {"errors": [error]})

            do_HEAD = do_GET  # noqa: N815 - the name is the library's

            def _answer(self, status: int, content: object) -> None:
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        super().__init__("127.0.0.1", Handler)

    def image(self, name: str) -> str:
        """The full name of an image that it does not have."""
        return f"localhost:{self.port}/{name}"
