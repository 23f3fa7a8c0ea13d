"""Passes a request on to an engine, and its answer back, piece by piece."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import Any

import aiohttp
from aiohttp import hdrs, web
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

CONNECT_SECONDS = 5.0

_OF_A_CONNECTION = frozenset(
    name.lower()
    for name in (
        hdrs.CONNECTION,
        hdrs.KEEP_ALIVE,
        hdrs.PROXY_AUTHENTICATE,
        hdrs.PROXY_AUTHORIZATION,
        hdrs.TE,
        hdrs.TRAILER,
        hdrs.TRANSFER_ENCODING,
        hdrs.UPGRADE,
        # It has been answered here.
        hdrs.EXPECT,
    )
)
"""Headers that say something of one connection only (RFC 9110, section 7.6.1)."""


class EngineUnreachableError(Exception):
    """No connection came about: nothing of the request was sent."""


class EngineLostError(Exception):
    """The engine took the request, and then went without an answer."""


def open_session() -> aiohttp.ClientSession:
    """To pass requests on with.

    Every request has a connection of its own: one that was kept may be closed by an engine that is
    being stopped just when it is used again.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        skip_auto_headers=(hdrs.USER_AGENT, hdrs.ACCEPT, hdrs.ACCEPT_ENCODING, hdrs.CONTENT_TYPE),
    )


async def ask_engine(
    session: aiohttp.ClientSession,
    request: web.Request,
    engine: str,
    body: bytes | AsyncIterable[bytes] | None,
) -> aiohttp.ClientResponse:
    """Send a request to an engine; returns once the head of its answer is there.

    Raises:
        EngineUnreachableError: there is no connection to it.
        EngineLostError: it went without an answer.
        aiohttp.web.HTTPBadRequest: the request is for something else than a path.
    """
    target = request.raw_path
    # Anything else could name another host.
    if not target.startswith("/"):
        raise web.HTTPBadRequest(text="the request's target must be a path")
    try:
        return await session.request(
            request.method,
            URL(engine + target, encoded=True),
            headers=_passed(request.headers),
            data=body,
            allow_redirects=False,
        )
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise EngineUnreachableError from error
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise EngineLostError from error


async def answer_from(
    request: web.Request, upstream: aiohttp.ClientResponse
) -> tuple[web.StreamResponse, bool]:
    """Give an engine's answer to the client, as it comes. Returns it, and whether it was whole.

    An answer that ends too early ends the client's connection too, so that it does not look whole.
    """
    response = web.StreamResponse(status=upstream.status, reason=upstream.reason)
    response.headers.update(_passed(upstream.headers))
    # The next request has a shorter way: the Service points to the engine by then.
    response.force_close()
    await response.prepare(request)
    try:
        async for part in upstream.content.iter_any():
            await response.write(part)
    except (aiohttp.ClientPayloadError, aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
        if request.transport is not None:
            request.transport.abort()
        return response, False
    await response.write_eof()
    return response, True


def _passed(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    named = {
        each.strip().lower()
        for value in headers.getall(hdrs.CONNECTION, ())
        for each in value.split(",")
    }
    left_out: Any = _OF_A_CONNECTION | named
    return CIMultiDict(
        (key, value) for key, value in headers.items() if key.lower() not in left_out
    )
