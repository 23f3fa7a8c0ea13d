"""Asks a Prometheus for the values that a query had over a time range."""

from __future__ import annotations

import json
import math
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_TIMEOUT_SECONDS = 30


class QueryError(Exception):
    """Prometheus refused a query or gave no usable answer; the message says why."""


@dataclass(frozen=True)
class TimeRange:
    """A stretch of time and how finely it is looked at.

    Attributes:
        start: Unix time in seconds.
        end: Unix time in seconds.
        step: seconds between two values.
    """

    start: float
    end: float
    step: float


@dataclass(frozen=True)
class Series:
    """One series of an answer.

    Attributes:
        labels: its labels.
        points: Unix time in seconds and value; values that are no number are left out.
    """

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


class Prometheus:
    """A Prometheus server's HTTP interface.

    Args:
        url: such as ``http://localhost:9090``.

    Raises:
        ValueError: it is no HTTP URL.
    """

    def __init__(self, url: str) -> None:
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise ValueError(f"{url} is no http:// or https:// URL")
        self._url = url.rstrip("/") + "/api/v1/query_range"

    def query_range(self, expr: str, span: TimeRange) -> list[Series]:
        """Every series of a query over a time range.

        Raises:
            QueryError: the query is refused, or Prometheus cannot be reached.
        """
        form = {"query": expr, "start": span.start, "end": span.end, "step": span.step}
        answer = self._post(urllib.parse.urlencode(form).encode())
        if answer.get("status") != "success":
            raise QueryError(f"{answer.get('errorType')}: {answer.get('error')}")
        return [_series(each) for each in answer["data"]["result"]]

    def _post(self, form: bytes) -> dict[str, Any]:
        request = urllib.request.Request(self._url, data=form)  # noqa: S310 scheme checked above
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310
                text = response.read()
        except urllib.error.HTTPError as error:
            # A refused query is told in the body of an error.
            with error:
                text = error.read()
        except OSError as error:
            raise QueryError(f"Prometheus cannot be reached: {error}") from None
        try:
            return dict(json.loads(text))
        except ValueError:
            raise QueryError("what answers is not Prometheus") from None


def _series(element: Mapping[str, Any]) -> Series:
    points = ((float(at), float(value)) for at, value in element["values"])
    return Series(dict(element["metric"]), tuple(p for p in points if math.isfinite(p[1])))
