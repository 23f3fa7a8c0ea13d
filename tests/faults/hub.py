"""A stand-in for the Hugging Face Hub that serves one model from a directory, or fails at it."""

from __future__ import annotations

import hashlib
import json
import re
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from tests.cluster.lab.addresses import NODE_ADDRESS
from tests.faults.serving import Serving

REPOSITORY = "lab/SmolLM2"
_COMMIT = hashlib.sha1(REPOSITORY.encode(), usedforsecurity=False).hexdigest()
_CHUNK_BYTES = 1 << 20
_FILE = re.compile(rf"/{REPOSITORY}/resolve/[^/]+/(?P<name>[^?]+)")


class Hub(Serving):
    """Answers what huggingface_hub asks for a model, at an address that pods reach.

    Attributes:
        failing: whether it answers 503 to everything.
        bytes_per_s: how fast it sends files; 0 for as fast as it can.
        asked: how many requests came.
    """

    def __init__(self, directory: Path) -> None:
        self.failing, self.bytes_per_s, self.asked = False, 0, 0
        handler = type("Handler", (_Handler,), {"hub": self, "directory": directory})
        super().__init__(NODE_ADDRESS, handler)

    @property
    def url(self) -> str:
        """What HF_ENDPOINT has to be."""
        return f"http://{NODE_ADDRESS}:{self.port}"


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    directory: Path
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.hub.asked += 1
        if self.hub.failing:
            self._json(503, {"error": "overloaded"})
            return
        path = self.path.partition("?")[0]
        file = _FILE.fullmatch(path)
        if file is not None:
            self._file(self.directory / file["name"])
        elif path.startswith(f"/api/models/{REPOSITORY}/tree/"):
            self._json(200, [self._entry(each) for each in self._files()])
        elif path.startswith(f"/api/models/{REPOSITORY}"):
            siblings = [{"rfilename": each.name} for each in self._files()]
            self._json(200, {"id": REPOSITORY, "sha": _COMMIT, "siblings": siblings})
        else:
            self._json(404, {"error": "not found"})

    do_HEAD = do_GET  # noqa: N815 - the name is the library's

    def _files(self) -> list[Path]:
        return sorted(each for each in self.directory.iterdir() if each.is_file())

    def _entry(self, file: Path) -> dict[str, Any]:
        return {
            "type": "file",
            "path": file.name,
            "size": file.stat().st_size,
            "oid": _etag(file),
        }

    def _file(self, file: Path) -> None:
        if not file.is_file():
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        size = file.stat().st_size
        begin = 0
        wanted = re.fullmatch(r"bytes=(\d+)-\d*", self.headers.get("Range", ""))
        if wanted:
            begin = int(wanted[1])
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{size - 1}/{size}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(size - begin))
        self.send_header("ETag", f'"{_etag(file)}"')
        self.send_header("X-Repo-Commit", _COMMIT)
        self.send_header("Accept-Ranges", "bytes")
        self.end_headers()
        if self.command != "HEAD":
            self._send(file, begin)

    def _send(self, file: Path, begin: int) -> None:
        with file.open("rb") as content:
            content.seek(begin)
            while chunk := content.read(_CHUNK_BYTES):
                self.wfile.write(chunk)
                if self.hub.bytes_per_s:
                    time.sleep(len(chunk) / self.hub.bytes_per_s)

    def _json(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def _etag(file: Path) -> str:
    return hashlib.sha1(
        f"{file.name} {file.stat().st_size}".encode(), usedforsecurity=False
    ).hexdigest()
