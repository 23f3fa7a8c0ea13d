"""The sidecars of all pods on fake nodes, in one process.

Nothing runs in such a pod, but its address is this machine's: whoever connects to it gets the
sidecar's own code, with the identity, the keys and the baseline policy of that very pod. An engine
is not pretended: there are no steps to tell of.

``python -m tests.scale.fake_pods API_URL DIRECTORY`` serves until its standard input ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from headway_operator.api.labels import (
    MANAGED_SELECTOR,
    METRICS_PORT,
    POLICY_PORT,
    SERVICE_LABEL,
    SIDECAR,
    service_of,
)
from headway_runtime.policy import MAX_PAYLOAD_BYTES
from headway_runtime.sidecar.__main__ import Supervisor
from headway_runtime.sidecar.application import Sidecar
from headway_runtime.sidecar.settings import Settings
from tests.scale.watching import Event, watch

READY = "ready"

_BACKLOG = 1024
_APPEARS_WITHIN_S = 5

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
ServiceName = tuple[str, str]
"""Namespace and name."""


@contextlib.contextmanager
def running(api_url: str, directory: Path) -> Iterator[int]:
    """The process, serving whatever pods there will be. Gives its pid.

    Raises:
        RuntimeError: it did not start; it has said why on standard error.
    """
    with subprocess.Popen(
        [sys.executable, "-m", __spec__.name, api_url, str(directory)],
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
                raise RuntimeError("the sidecars of the fake pods did not start")
            yield process.pid
        finally:
            process.stdin.close()


@dataclass(frozen=True)
class Pod:
    """A pod that has an address.

    Attributes:
        service: the service it belongs to.
        service_uid: that service's uid, as its sidecar is told it.
    """

    uid: str
    address: str
    service: ServiceName
    service_uid: str


def pod_of(body: dict[str, Any]) -> Pod | None:
    """Read a pod; None while it has no address."""
    metadata, address = body["metadata"], body.get("status", {}).get("podIP")
    if not address:
        return None
    sidecar = next(each for each in body["spec"]["initContainers"] if each["name"] == SIDECAR)
    environment = {each["name"]: each.get("value", "") for each in sidecar["env"]}
    return Pod(
        metadata["uid"],
        address,
        (metadata["namespace"], metadata["labels"][SERVICE_LABEL]),
        environment["HEADWAY_SERVICE_UID"],
    )


class RunningSidecar:
    """A pod's sidecar and the task in which it follows its ConfigMap."""

    def __init__(self, settings: Settings, application: web.Application) -> None:
        sidecar = Sidecar(settings)
        self.handlers: dict[tuple[str, str], Handler] = {
            (route.method, route.path): route.handler for route in sidecar.routes()
        }
        self._settings = settings
        self._following: AsyncIterator[None] = sidecar.follow_config_map(application)

    async def start(self) -> None:
        """Read the ConfigMap and follow it."""
        await anext(self._following)

    async def stop(self) -> None:
        """Stop, and leave nothing behind."""
        await anext(self._following, None)
        shutil.rmtree(self._settings.run_dir)


class FakePods:
    """Sidecars by the address of their pod."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._sidecars: dict[str, RunningSidecar] = {}
        self._started: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._pods: dict[str, Pod] = {}
        self._mounted: set[ServiceName] = set()
        self._waiting: defaultdict[ServiceName, dict[str, Pod]] = defaultdict(dict)
        self.application = web.Application(client_max_size=2 * MAX_PAYLOAD_BYTES + 1)
        self.application.router.add_route("*", "/{path:.*}", self._answer)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        """Let the sidecar answer whose pod's address the connection came to."""
        address = request.get_extra_info("sockname")[0]
        # The operator may hear of a pod earlier than this process. In a real pod, the sidecar runs
        # before anybody hears of it.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._started[address].wait(), _APPEARS_WITHIN_S)
        sidecar = self._sidecars.get(address)
        handler = sidecar and sidecar.handlers.get((request.method, request.path))
        if not handler:
            raise web.HTTPNotFound
        return await handler(request)

    async def config_map_changed(self, event: Event) -> None:
        """Do as a kubelet does: the files are in every pod of the service. They stay, as there."""
        service = (event.body["metadata"]["namespace"], service_of("ConfigMap", event.name))
        if event.deleted:
            return
        directory = self._policy_dir(service)
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in event.body.get("data", {}).items():
            partial = directory / f".{name}"
            partial.write_text(text)
            partial.replace(directory / name)
        self._mounted.add(service)
        for pod in self._waiting.pop(service, {}).values():
            await self._start(pod)

    async def pod_changed(self, event: Event) -> None:
        """Start a pod's sidecar once it has an address and a ConfigMap; stop it when it is gone."""
        uid = event.body["metadata"]["uid"]
        if event.deleted:
            await self._stop(uid)
            return
        pod = pod_of(event.body)
        if pod is None or uid in self._pods:
            return
        if pod.service in self._mounted:
            await self._start(pod)
        else:
            self._waiting[pod.service][uid] = pod

    async def _start(self, pod: Pod) -> None:
        settings = Settings(
            run_dir=self._directory / "run" / pod.uid,
            policy_dir=self._policy_dir(pod.service),
            service_uid=pod.service_uid,
            pod_uid=pod.uid,
        )
        settings.run_dir.mkdir(parents=True)
        sidecar = RunningSidecar(settings, self.application)
        self._pods[pod.uid], self._sidecars[pod.address] = pod, sidecar
        await sidecar.start()
        self._started[pod.address].set()

    async def _stop(self, uid: str) -> None:
        for pods in self._waiting.values():
            pods.pop(uid, None)
        pod = self._pods.pop(uid, None)
        if pod is not None:
            del self._started[pod.address]
            await self._sidecars.pop(pod.address).stop()

    def _policy_dir(self, service: ServiceName) -> Path:
        return self._directory / "policy" / "_".join(service)


async def serve(api_url: str, directory: Path) -> None:
    """Serve until standard input ends."""
    pods = FakePods(directory)
    kept_s = Supervisor(Settings(directory, directory, "", "")).cfg.keepalive
    runner = web.AppRunner(pods.application, access_log=None, keepalive_timeout=kept_s)
    await runner.setup()
    for port in (POLICY_PORT, METRICS_PORT):
        await web.TCPSite(runner, "0.0.0.0", port, backlog=_BACKLOG).start()  # noqa: S104 - theirs
    print(READY, flush=True)
    followed = (
        follow(f"{api_url}/api/v1/configmaps", pods.config_map_changed),
        follow(f"{api_url}/api/v1/pods", pods.pod_changed),
    )
    tasks = [asyncio.create_task(each) for each in followed]
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    # A watch never ends by itself: the first to end has failed.
    await asyncio.wait([*tasks, ended], return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        if task.done():
            task.result()
        task.cancel()
    await runner.cleanup()


async def follow(url: str, changed: Callable[[Event], Awaitable[None]]) -> None:
    """Hand on every change of Headway's objects of a kind."""
    async for event in watch(url, MANAGED_SELECTOR):
        await changed(event)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2])))
