"""The three servers of an activator: for clients, for the operator, for probes and metrics."""

from __future__ import annotations

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from headway_runtime.activator.front import Front

MOST_PATIENCE_SECONDS = 120.0


def client_application(front: Front) -> web.Application:
    """Everything goes to the front."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", front.handle)
    return application


def control_application(front: Front) -> web.Application:
    """``GET /v1/demand``; with ``known`` and ``wait`` it waits so long for another version."""

    async def demand(request: web.Request) -> web.Response:
        try:
            patience_s = min(float(request.query.get("wait", "0")), MOST_PATIENCE_SECONDS)
        except ValueError:
            raise web.HTTPBadRequest(text="wait must be a number of seconds") from None
        if patience_s > 0:
            await front.in_flight.changed_from(request.query.get("known", ""), patience_s)
        return web.json_response(front.in_flight.document())

    application = web.Application()
    application.router.add_get("/v1/demand", demand)
    return application


def metrics_application(front: Front) -> web.Application:
    """``GET /metrics``, and ``/readyz`` for the probes."""

    async def metrics(_request: web.Request) -> web.Response:
        text = generate_latest(front.metrics.registry)
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def ready(_request: web.Request) -> web.Response:
        return web.Response(text="ok")

    application = web.Application()
    application.router.add_get("/metrics", metrics)
    application.router.add_get("/readyz", ready)
    return application
