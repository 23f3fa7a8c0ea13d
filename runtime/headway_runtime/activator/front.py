"""What clients meet: requests are passed on, held until they can be, or refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import aiohttp
from aiohttp import hdrs, web

from headway_runtime.activator.answers import Answer, Refusal, at_once, lost, refused, wakes
from headway_runtime.activator.engines import Engines
from headway_runtime.activator.in_flight import InFlightRequests
from headway_runtime.activator.metrics import Metrics, Now
from headway_runtime.activator.passing import (
    EngineLostError,
    EngineUnreachableError,
    answer_from,
    ask_engine,
)
from headway_runtime.activator.room import NoRoomError, Place, Room
from headway_runtime.activator.settings import Limits
from headway_runtime.activator.start_time import StartTime


@dataclass
class Front:
    """Handles the requests of clients.

    Attributes:
        session: to pass requests on with.
        limits: of what is held.
        served_name: name of the model.
        start_time: how long engines take to start.
        clock: in seconds, monotonic.
        engines: those that take requests.
        in_flight: what the operator is told.
        room: for requests that are held.
        metrics: of all this.
    """

    session: aiohttp.ClientSession
    limits: Limits
    served_name: str
    start_time: StartTime
    clock: Callable[[], float]
    engines: Engines = field(default_factory=Engines)
    in_flight: InFlightRequests = field(init=False)
    room: Room = field(init=False)
    metrics: Metrics = field(init=False)

    def __post_init__(self) -> None:
        self.in_flight = InFlightRequests(self.clock)
        self.room = Room(self.limits.requests, self.limits.body_bytes)
        self.metrics = Metrics(self._now)

    def _now(self) -> Now:
        held, passing = self.in_flight.held, self.in_flight.passing
        return Now(held, self.room.body_bytes, passing, self.start_time.seconds)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request of a client."""
        try:
            return await self._handle(request)
        except EngineLostError:
            return self._say(lost(request.path), "Lost")
        except (ConnectionError, asyncio.CancelledError):
            self.metrics.ended("GaveUp")
            raise

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        is_upgrade = hdrs.UPGRADE in request.headers
        if not is_upgrade and (engine := self.engines.next()) is not None:
            try:
                return await self._pass_on(request, engine)
            except EngineUnreachableError:
                self.engines.failed(engine)
        known = at_once(request.method, request.path, self.served_name)
        if known is not None:
            return self._say(known, "Answered")
        if not wakes(request.method, is_upgrade=is_upgrade):
            return self._refuse(request, Refusal.NOT_HELD, "no engine runs, and this starts none")
        self.start_time.begins(self.clock())
        self.in_flight.asked()
        if is_upgrade:
            return self._refuse(request, Refusal.NOT_HELD, "connections like this are not held")
        return await self._hold_or_refuse(request)

    async def _hold_or_refuse(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._hold(request)
        except NoRoomError as error:
            return self._refuse(request, Refusal.FULL, f"no engine is ready, and {error}")
        except TimeoutError:
            why = f"no engine became ready in {self.limits.hold_s:.0f} s"
            return self._refuse(request, Refusal.TOO_LATE, why)

    async def _pass_on(self, request: web.Request, engine: str) -> web.StreamResponse:
        with self.in_flight.passing_on(looks=not wakes(request.method, is_upgrade=False)):
            body = request.content if request.body_exists else None
            upstream = await ask_engine(self.session, request, engine, body)
            return await self._relay(request, upstream)

    async def _hold(self, request: web.Request) -> web.StreamResponse:
        """Hold a request until an engine takes it.

        Raises:
            NoRoomError: there is no room for it.
            TimeoutError: no engine was ready in time.
        """
        began = self.clock()
        with self.room.place() as place:
            async with asyncio.timeout(self.limits.hold_s) as bound:
                until = bound.when()
                with self.in_flight.holding():
                    await _read_body(request, place)
                    engine = await self.engines.wait()
            while True:
                try:
                    with self.in_flight.passing_on():
                        body = bytes(place.body) if request.body_exists else None
                        waited = self.clock() - began
                        upstream = await ask_engine(self.session, request, engine, body)
                        self.metrics.waited(waited)
                        place.give_back()
                        return await self._relay(request, upstream)
                except EngineUnreachableError:
                    self.engines.failed(engine)
                async with asyncio.timeout_at(until):
                    with self.in_flight.holding():
                        engine = await self.engines.wait()

    async def _relay(
        self, request: web.Request, upstream: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        # Closed and not released: the engine is to hear of it when a client goes away.
        try:
            response, is_whole = await answer_from(request, upstream)
        finally:
            upstream.close()
        self.metrics.ended("Passed" if is_whole else "Lost")
        return response

    def _refuse(self, request: web.Request, refusal: Refusal, why: str) -> web.Response:
        retry_after_s = self.start_time.remaining(self.clock())
        return self._say(refused(refusal, why, request.path, retry_after_s), refusal.value)

    def _say(self, answer: Answer, outcome: str) -> web.Response:
        self.metrics.ended(outcome)
        headers = {} if answer.retry_after_s is None else {"Retry-After": str(answer.retry_after_s)}
        return web.Response(
            status=answer.status,
            body=answer.body,
            headers=headers,
            content_type="application/json",
        )


async def _read_body(request: web.Request, place: Place) -> None:
    async for part in request.content.iter_any():
        place.add(part)
