"""The sidecar's HTTP interface.

Three sockets lead to one application, and each serves its own routes: the port for policies, which
a NetworkPolicy keeps for the operator, the port for probes and metrics, and the unix socket for the
engine container's ``preStop``. What is told of single requests is on the first one, where people
get through ``kubectl port-forward``: other pods need not see whose requests there are.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from headway_runtime.exchange.refusal_counts import read_counts, read_refused_work
from headway_runtime.exchange.statistics_file import SLOTS
from headway_runtime.exchange.suspects_file import read_all
from headway_runtime.exchange.tenant_totals import read_totals
from headway_runtime.policy import MAX_PAYLOAD_BYTES
from headway_runtime.sidecar.acceptance import Outcome
from headway_runtime.sidecar.draining import Draining
from headway_runtime.sidecar.engines import read_engines
from headway_runtime.sidecar.metrics import PodCollector, PodView
from headway_runtime.sidecar.policies import Policies
from headway_runtime.sidecar.quarantine import quarantine_document
from headway_runtime.sidecar.request_routes import ONE_REQUEST, REQUESTS, RequestRoutes
from headway_runtime.sidecar.settings import Settings
from headway_runtime.sidecar.status import status_document

_LOGGER = logging.getLogger("headway.sidecar")

CONFIG_MAP_PERIOD_S = 1.0

_STATUS_OF = {
    Outcome.APPLIED: HTTPStatus.OK,
    Outcome.ALREADY_APPLIED: HTTPStatus.OK,
    Outcome.BAD_FORMAT: HTTPStatus.BAD_REQUEST,
    Outcome.BAD_SIGNATURE: HTTPStatus.UNAUTHORIZED,
    Outcome.UNKNOWN_KEY: HTTPStatus.UNAUTHORIZED,
    Outcome.WRONG_SCOPE: HTTPStatus.FORBIDDEN,
    Outcome.OUTDATED: HTTPStatus.CONFLICT,
}

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Sidecar:
    """Handlers and what they share."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._policies = Policies(settings)
        self._draining = Draining(settings.run_dir)
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(PodCollector(self._look))

    def routes(self) -> list[web.RouteDef]:
        """Where requests go, whatever socket they come from."""
        return [
            web.put("/v1/policy", self.put_policy),
            web.get("/v1/status", self.get_status),
            web.get("/quarantine", self.get_quarantine),
            web.get("/startedz", self.started),
            web.get("/readyz", self.ready),
            web.get("/metrics", self.metrics),
            web.post("/drain", self.drain),
        ]

    async def put_policy(self, request: web.Request) -> web.Response:
        """Take in a signed policy."""
        answer = self._policies.push(await request.read())
        document = {"outcome": answer.outcome.value}
        if answer.message:
            document["message"] = answer.message
        current = self._policies.current
        # A stranger is not told what is in force.
        signed = answer.outcome in (Outcome.APPLIED, Outcome.ALREADY_APPLIED, Outcome.OUTDATED)
        if signed and current is not None:
            document["stamp"] = str(current.stamp)
        return web.json_response(document, status=_STATUS_OF[answer.outcome])

    async def get_status(self, _: web.Request) -> web.Response:
        """What the operator wants to know of this pod."""
        document = status_document(
            self._settings,
            self._policies.current,
            read_engines(self._settings.run_dir, records=1),
            read_all(self._settings.run_dir),
            draining=bool(self._draining),
            now_ns=time.time_ns(),
        )
        return web.json_response(document)

    async def get_quarantine(self, _: web.Request) -> web.Response:
        """Which requests are tried or refused since an engine died with them."""
        told = read_all(self._settings.run_dir)
        return web.json_response(quarantine_document(told, time.time()))

    async def started(self, _: web.Request) -> web.Response:
        """Whether the policy file is written, so that the engine may start."""
        return _probe(None if self._policies.current is not None else "no policy yet")

    async def ready(self, _: web.Request) -> web.Response:
        """Whether the pod may get requests, as far as the sidecar knows."""
        if self._policies.current is None:
            return _probe("no policy yet")
        return _probe("draining" if self._draining else None)

    async def metrics(self, _: web.Request) -> web.Response:
        """Metrics for Prometheus."""
        return web.Response(
            body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )

    async def drain(self, request: web.Request) -> web.Response:
        """Be unready until another container than the one that is named serves."""
        try:
            self._draining.start(await request.text())
        except ValueError:
            raise web.HTTPBadRequest(text="the body must be a number of clock ticks") from None
        _LOGGER.info("draining")
        return web.Response(text="draining\n")

    async def follow_config_map(self, _: web.Application) -> AsyncIterator[None]:
        """Follow the ConfigMap while the application runs."""
        self._policies.follow_config_map()
        task = asyncio.create_task(self._follow())
        yield
        task.cancel()

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(CONFIG_MAP_PERIOD_S)
            try:
                self._policies.follow_config_map()
            except Exception:
                # A task that ends would cut this pod off from new keys without a word.
                _LOGGER.exception("could not take in the ConfigMap")

    def _look(self) -> PodView:
        return PodView(
            engines=read_engines(self._settings.run_dir, records=SLOTS, with_classes=True),
            policy=self._policies.current,
            outcomes=dict(self._policies.outcomes),
            draining=bool(self._draining),
            now_ns=time.time_ns(),
            refusals=read_counts(self._settings.run_dir),
            tenants=read_totals(self._settings.run_dir),
            told=read_all(self._settings.run_dir),
            refused_work=read_refused_work(self._settings.run_dir, time.time()),
        )


def create_application(settings: Settings) -> web.Application:
    """The application, to be served on the sockets of the settings."""
    sidecar = Sidecar(settings)
    application = web.Application(
        client_max_size=2 * MAX_PAYLOAD_BYTES + 1, middlewares=[_own_routes_only(settings)]
    )
    application.add_routes(sidecar.routes())
    application.add_routes(RequestRoutes(settings).routes())
    application.cleanup_ctx.append(sidecar.follow_config_map)
    return application


def _own_routes_only(settings: Settings) -> Callable[..., Awaitable[web.StreamResponse]]:
    served = {
        settings.policy_port: {"/v1/policy", "/v1/status", "/quarantine", REQUESTS, ONE_REQUEST},
        settings.metrics_port: {"/startedz", "/readyz", "/metrics"},
        str(settings.socket): {"/drain"},
    }

    @web.middleware
    async def middleware(request: web.Request, handler: _Handler) -> web.StreamResponse:
        if served.get(_socket_of(request), frozenset()).isdisjoint(_paths(request)):
            raise web.HTTPNotFound
        return await handler(request)

    return middleware


def _paths(request: web.Request) -> tuple[str, ...]:
    """The path, and the one of the route that it leads to."""
    resource = request.match_info.route.resource
    return (request.path,) if resource is None else (request.path, resource.canonical)


def _socket_of(request: web.Request) -> int | str | None:
    name = request.get_extra_info("sockname")
    # A unix socket's name is its path, a TCP socket's is (address, port, ...); a client that has
    # hung up leaves none.
    return name if name is None or isinstance(name, str) else int(name[1])


def _probe(objection: str | None) -> web.Response:
    if objection is None:
        return web.Response(text="ok\n")
    return web.Response(text=f"{objection}\n", status=HTTPStatus.SERVICE_UNAVAILABLE)
