"""Asks Prometheus for the newest samples of all pods, in two queries however many there are."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from headway_operator.observe.engine_metrics.names import ALL, CLASS_LABEL, STEPS
from headway_operator.observe.engine_metrics.reading import Series

TIMEOUT_SECONDS = 2.5
_MAX_ANSWER_BYTES = 256 * 1024 * 1024
_SUCCESS = 200

PodName = tuple[str, str]
"""Namespace and name of a pod: the target labels of its series."""


class PrometheusError(Exception):
    """Prometheus cannot be asked; the message says why, and quotes nothing that it answered."""


@dataclass
class PodSeries:
    """What Prometheus has of one pod.

    Attributes:
        age_s: seconds since its newest sample, by Prometheus's clock.
        series: the series that decisions are made from.
    """

    age_s: float
    series: list[Series] = field(default_factory=list)


class Prometheus:
    """A Prometheus server's HTTP interface.

    Args:
        url: such as ``https://prometheus.monitoring:9090``, with a path if it has one.
        ca_file: certificates to trust instead of the system's.
        token_file: file with a bearer token; read for every request, as it may be replaced.
        namespaces: ask only for these; for all when empty.
    """

    def __init__(
        self,
        url: str,
        ca_file: Path | None = None,
        token_file: Path | None = None,
        namespaces: Iterable[str] = (),
    ) -> None:
        self._query_url = f"{url.rstrip('/')}/api/v1/query"
        self._ca_file = ca_file
        self._token_file = token_file
        self._matcher = _matcher(namespaces)
        self._session: aiohttp.ClientSession | None = None

    async def newest(self) -> dict[PodName, PodSeries]:
        """The newest samples of every pod that Prometheus knows.

        Raises:
            PrometheusError: it does not answer, or not as Prometheus does.
        """
        names = "|".join(ALL)
        ages, values = await asyncio.gather(
            self._query(f"time() - timestamp({STEPS}{{{self._matcher}}})"),
            self._query(f'{{__name__=~"{names}",{self._matcher}}}'),
        )
        pods = _ages(ages)
        for name, series in _series(values):
            if name in pods:
                pods[name].series.append(series)
        # A scrape that failed between the two queries is none, and no pod without metrics.
        return {name: each for name, each in pods.items() if each.series}

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def _query(self, query: str) -> list[Any]:
        try:
            async with self._open_session().post(
                self._query_url,
                data={"query": query, "timeout": str(TIMEOUT_SECONDS)},
                headers=self._headers(),
                allow_redirects=False,
            ) as response:
                if response.status != _SUCCESS:
                    raise PrometheusError(f"Prometheus answers HTTP {response.status}")
                return _result(await _read(response.content))
        except TimeoutError:
            text = f"Prometheus does not answer within {TIMEOUT_SECONDS} s"
            raise PrometheusError(text) from None
        except (aiohttp.ClientError, OSError) as error:
            text = f"Prometheus cannot be reached ({type(error).__name__})"
            raise PrometheusError(text) from None

    def _headers(self) -> dict[str, str]:
        if self._token_file is None:
            return {}
        try:
            token = self._token_file.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            raise PrometheusError("The bearer token for Prometheus cannot be read") from None
        if not token.isprintable():  # no header can hold it
            raise PrometheusError("The bearer token for Prometheus has a control character inside")
        return {"Authorization": f"Bearer {token}"}

    def _open_session(self) -> aiohttp.ClientSession:
        """Made on first use: it belongs to the running event loop."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._tls()),
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        return self._session

    def _tls(self) -> ssl.SSLContext | bool:
        if self._ca_file is None:
            return True
        try:
            return ssl.create_default_context(cafile=str(self._ca_file))
        except (OSError, ssl.SSLError):
            text = "The certificates to trust for Prometheus cannot be read"
            raise PrometheusError(text) from None


def _matcher(namespaces: Iterable[str]) -> str:
    chosen = "|".join(sorted(namespaces))
    return f'namespace=~"{chosen}"' if chosen else 'namespace!=""'


async def _read(content: aiohttp.StreamReader) -> bytes:
    pieces, size = [], 0
    async for piece in content.iter_any():
        size += len(piece)
        if size > _MAX_ANSWER_BYTES:
            raise PrometheusError("Prometheus answers more than can be taken in")
        pieces.append(piece)
    return b"".join(pieces)


def _result(text: bytes) -> list[Any]:
    try:
        result = json.loads(text)["data"]["result"]
    except (ValueError, RecursionError, LookupError, TypeError):
        result = None
    if not isinstance(result, list):
        raise PrometheusError("What answers is not Prometheus")
    return result


def _ages(result: Iterable[Any]) -> dict[PodName, PodSeries]:
    pods: dict[PodName, PodSeries] = {}
    for labels, age_s in _vector(result):
        name = _pod_name(labels)
        # Scraped by two jobs, a pod has two series: the newer one counts.
        if name is not None and (name not in pods or age_s < pods[name].age_s):
            pods[name] = PodSeries(max(0.0, age_s))
    return pods


def _series(result: Iterable[Any]) -> Iterator[tuple[PodName, Series]]:
    for labels, value in _vector(result):
        name, metric = _pod_name(labels), labels.get("__name__")
        if name is not None and isinstance(metric, str):
            yield name, Series(metric, str(labels.get(CLASS_LABEL, "")), value)


def _vector(result: Iterable[Any]) -> Iterator[tuple[Mapping[str, Any], float]]:
    for element in result:
        try:
            labels, value = element["metric"], float(element["value"][1])
        except (LookupError, TypeError, ValueError):
            continue
        if isinstance(labels, dict):
            yield labels, value


def _pod_name(labels: Mapping[str, Any]) -> PodName | None:
    namespace, pod = labels.get("namespace"), labels.get("pod")
    return (namespace, pod) if isinstance(namespace, str) and isinstance(pod, str) else None
