"""Many sidecars in one process, each on a loopback address of its own.

``python -m tests.scale.listeners DIRECTORY COUNT`` serves until its standard input ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

from aiohttp import web

from headway_runtime.sidecar.__main__ import Supervisor
from headway_runtime.sidecar.application import create_application
from headway_runtime.sidecar.settings import Settings

SERVICE_UID = "5ca1e000-0000-4000-8000-000000000000"
READY = "ready"

_HOSTS_PER_NETWORK = 250
_MOST = 64 * _HOSTS_PER_NETWORK


def settings_of(directory: Path, number: int) -> Settings:
    """Settings of the sidecar with a number: who it is, where it listens, its two directories."""
    network, host = divmod(number, _HOSTS_PER_NETWORK)
    return Settings(
        run_dir=directory / "run" / str(number),
        policy_dir=directory / "policy" / str(number),
        service_uid=SERVICE_UID,
        pod_uid=str(uuid.UUID(int=uuid.UUID(SERVICE_UID).int + number + 1)),
        # All of 127.0.0.0/8 is this machine. The port must be the real one: the application tells
        # its sockets apart by it.
        address=f"127.89.{network}.{host + 1}",
    )


@contextlib.contextmanager
def running(directory: Path, count: int) -> Iterator[subprocess.Popen[str]]:
    """The process, listening on all addresses.

    Raises:
        RuntimeError: it did not start; it has said why on standard error.
    """
    if not 1 <= count <= _MOST:
        raise ValueError(f"{count} listeners: must be 1 to {_MOST}")
    with subprocess.Popen(
        [sys.executable, "-m", __spec__.name, str(directory), str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # Ctrl-C ends the benchmark, and that ends this process.
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            if process.stdout.readline().strip() != READY:
                raise RuntimeError("the listeners did not start")
            yield process
        finally:
            process.stdin.close()


async def serve(directory: Path, count: int) -> None:
    """Listen until standard input ends."""
    runners = []
    for number in range(count):
        settings = settings_of(directory, number)
        # The application as the sidecar's server runs it.
        kept_s = Supervisor(settings).cfg.keepalive
        runner = web.AppRunner(
            create_application(settings), access_log=None, keepalive_timeout=kept_s
        )
        await runner.setup()
        await web.TCPSite(runner, settings.address, settings.policy_port).start()
        runners.append(runner)
    print(READY, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for runner in runners:
        await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
