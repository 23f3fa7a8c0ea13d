"""Stands for vLLM: takes as much memory as it is told for its KV cache, then answers its probe."""

import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = 4096
GIB = 2**30


class Healthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
cache = bytearray(int(os.environ["VLLM_CPU_KVCACHE_SPACE"]) * GIB)
# Memory that nobody has written to is not there yet.
cache[::PAGE] = b"\1" * len(cache[::PAGE])
port = int(sys.argv[sys.argv.index("--port") + 1])
ThreadingHTTPServer(("", port), Healthy).serve_forever()
