"""``GET /requests/ID`` and ``GET /requests?slowest=N``: why was this request slow."""

from __future__ import annotations

import time
from collections.abc import Sequence
from http import HTTPStatus

from aiohttp import web

from headway_runtime.exchange.history_file import ENDED
from headway_runtime.scheduling.history.summary import RequestSummary
from headway_runtime.sidecar.requests import MOST_TOLD, Requests, request_document
from headway_runtime.sidecar.settings import Settings

ONE_REQUEST = "/requests/{id}"
REQUESTS = "/requests"

_BY = {"end": False, "firstToken": True}
"""What requests are told by, and whether that is their first token."""


class RequestRoutes:
    """Handlers; the files are read for each answer."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def routes(self) -> list[web.RouteDef]:
        """Where requests go."""
        return [
            web.get("/requests/{id:(?s:.+)}", self.get_request),
            web.get(REQUESTS, self.get_requests),
        ]

    async def get_request(self, request: web.Request) -> web.Response:
        """Requests with this id: of vLLM, of the answer, or the one that the client sent."""
        looked = self._look()
        told = looked.asked_for(request.match_info["id"])
        if not told:
            return _refusal(HTTPStatus.NOT_FOUND, _NOT_FOUND)
        return _answer(looked, told)

    async def get_requests(self, request: web.Request) -> web.Response:
        """The requests that took longest."""
        count, by = request.query.get("slowest", "10"), request.query.get("by", "end")
        if not (count.isdecimal() and 1 <= int(count) <= MOST_TOLD):
            return _refusal(HTTPStatus.BAD_REQUEST, f"slowest must be 1 to {MOST_TOLD}")
        if by not in _BY:
            return _refusal(HTTPStatus.BAD_REQUEST, f"by must be {' or '.join(_BY)}")
        looked = self._look()
        of = (request.query.get("class"), request.query.get("tenant"))
        told = looked.slowest(int(count), *of, by_first_token=_BY[by])
        return _answer(looked, told)

    def _look(self) -> Requests:
        return Requests(self._settings.run_dir, time.time_ns())


_NOT_FOUND = (
    f"No request with this id is among the last {ENDED} that have ended in this pod since its "
    "engine started, or among those that are under way for some seconds. Ask for the id in "
    "vLLM's answer (chatcmpl-..., cmpl-..., resp_...) or for the X-Request-Id that was sent, and "
    "ask the other pods of the service."
)


def _answer(looked: Requests, told: Sequence[RequestSummary]) -> web.Response:
    return web.json_response(
        {
            "requests": [request_document(each) for each in told],
            "lostHistories": looked.lost,
            "droppedSpans": looked.dropped_spans,
        }
    )


def _refusal(status: HTTPStatus, message: str) -> web.Response:
    return web.json_response({"message": message}, status=status)
