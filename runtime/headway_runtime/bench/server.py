"""The engine under test: started once, found again by later commands, stopped at the end.

``python -m headway_runtime.bench.server start --shape qwen3-8b --state DIR``, then ``... stop``.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path

from headway_runtime.bench.engine_command import RUN_DIR, SCHEDULER, Start, command, environment
from headway_runtime.bench.model_folder import SHAPES, TINY, write_model

STATE_FILE = "server.json"
ENGINE_LOG = "engine.log"

_STOP_S = 30.0
_POLL_S = 0.5


@dataclass(frozen=True)
class Server:
    """An engine that was started.

    Attributes:
        pid: of its process, which leads a session of its own.
        url: where it listens.
        shape: the model's shape.
        kv_blocks: KV blocks it was told to have; None leaves it to vLLM.
        queued: open requests from which on it refuses more; None refuses nobody.
        api_servers: processes that talk to clients.
    """

    pid: int
    url: str
    shape: str
    kv_blocks: int | None = None
    queued: int | None = None
    api_servers: int = 1


def start(state: Path, wanted: Start) -> Server:
    """Start an engine that outlives this process.

    Raises:
        OSError: the state directory cannot be written.
    """
    state = state.resolve()
    (state / RUN_DIR).mkdir(parents=True, exist_ok=True)
    for left_over in (state / RUN_DIR).iterdir():
        left_over.unlink()
    model = wanted.model or write_model(wanted.shape, state / "models" / wanted.shape)
    with (state / ENGINE_LOG).open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - our own command line
            command(model, wanted),
            env=environment(state, os.environ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    url = f"http://127.0.0.1:{wanted.port}"
    server = Server(
        process.pid, url, wanted.shape, wanted.kv_blocks, wanted.queued, wanted.api_servers
    )
    (state / STATE_FILE).write_text(json.dumps(asdict(server)), encoding="utf-8")
    return server


def find(state: Path) -> Server | None:
    """The engine started under this directory, None if it runs no more."""
    try:
        server = Server(**json.loads((state / STATE_FILE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    return server if _runs(server.pid) and _is_engine(server.pid) else None


def wait_until_ready(server: Server, timeout_s: float) -> None:
    """Wait until it answers.

    Raises:
        RuntimeError: it has ended, or does not answer in time.
    """
    until_s = time.monotonic() + timeout_s
    while time.monotonic() < until_s:
        if not _runs(server.pid):
            raise RuntimeError("the engine has ended; see its log")
        if _answers(server.url):
            return
        time.sleep(_POLL_S)
    raise RuntimeError(f"the engine does not answer after {timeout_s:.0f} s")


def stop(server: Server) -> None:
    """Stop it and all its processes."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        _signal_all(server.pid, number)
        until_s = time.monotonic() + _STOP_S
        while _runs(server.pid) and time.monotonic() < until_s:
            time.sleep(_POLL_S)
    # The last signal reaches workers too that outlived the process that leads them.


def _signal_all(leader: int, number: signal.Signals) -> None:
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        return


def _runs(pid: int) -> bool:
    """Whether this process runs; one that has ended may still wait to be reaped."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    state = status.rpartition(")")[2].split()[0]
    return state not in "ZX"


def _is_engine(pid: int) -> bool:
    """Whether this is an engine of ours, and no later process that got its number."""
    try:
        return SCHEDULER.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as response:  # noqa: S310 - own URL
            return bool(response.status == 200)  # noqa: PLR2004 - HTTP's OK
    except (urllib.error.URLError, OSError):
        return False


def main(arguments: list[str]) -> int:
    """Command line; the process's exit code."""
    parser = argparse.ArgumentParser(prog="headway_runtime.bench.server", description=__doc__)
    parser.add_argument("action", choices=("start", "stop", "status"))
    parser.add_argument("--state", type=Path, required=True, help="directory for all of its files")
    parser.add_argument("--shape", choices=(*SHAPES, TINY), default="qwen3-8b")
    parser.add_argument("--model", type=Path, help="folder of a real model, instead of a shape")
    parser.add_argument("--port", type=int, default=8100)
    parser.add_argument("--kv-blocks", type=int, help="KV blocks, for scenario kv-pressure")
    parser.add_argument("--queued", type=int, help="open requests at most, for arms stock-queued-N")
    parser.add_argument("--api-servers", type=int, default=1, help="processes that talk to clients")
    parser.add_argument("--timeout-s", type=float, default=300)
    options, extra = parser.parse_known_args(arguments)
    server = find(options.state)
    if options.action == "start" and server is None:
        wanted = Start(
            options.shape if options.model is None else options.model.resolve().name,
            options.port,
            options.kv_blocks,
            options.api_servers,
            options.queued,
            options.model,
            tuple(extra),
        )
        server = start(options.state, wanted)
        begun_s = time.monotonic()
        wait_until_ready(server, options.timeout_s)
        _say(f"ready after {time.monotonic() - begun_s:.0f} s")
    elif options.action == "stop" and server is not None:
        stop(server)
        server = None
    _say(json.dumps(asdict(server)) if server else "no engine runs")
    return 0 if server or options.action != "status" else 1


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - a command-line program


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
