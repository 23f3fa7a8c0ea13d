"""A router in front of the service's engines, and what it has in its list."""

from __future__ import annotations

import contextlib
import json
import urllib.request
from collections.abc import Iterator
from typing import Any

from tests.e2e.service import Service
from tests.e2e.waiting import wait_until

_ROUTER = {"router": {"enabled": True, "replicas": 1}}
_LOOKS_S = 0.02


@contextlib.contextmanager
def routed(service: Service) -> Iterator[None]:
    """The service behind a router that has all of its engines; afterwards without one.

    Raises:
        TimeoutError: the router did not come, has not all engines, or did not go.
    """
    with service.changed(_ROUTER):
        service.wait_for("RouterReady", "True", timeout_s=180)
        service.wait_for("Ready", "True", timeout_s=60)
        wait_until(
            lambda: listed(service),
            lambda urls: len(urls) == len(service.pods()),
            timeout_s=60,
            what="all engines in the router's list",
        )
        yield
    wait_until(service.routers, lambda pods: not pods, timeout_s=90, what="no router")


def listed(service: Service) -> list[str]:
    """URLs of the engines among which the only router chooses."""
    (router,) = service.routers()
    return _listed_by(router)


def wait_unlisted(service: Service, engine: dict[str, Any], timeout_s: float = 30) -> None:
    """Wait until the only router does not choose this engine any more.

    Raises:
        TimeoutError: it still does.
    """
    (router,) = service.routers()
    host = f"//{engine['status']['podIP']}:"
    wait_until(
        lambda: _listed_by(router),
        lambda urls: not any(host in each for each in urls),
        timeout_s,
        what="the router's list without the engine",
        period_s=_LOOKS_S,
    )


def _listed_by(router: dict[str, Any]) -> list[str]:
    url = f"http://{router['status']['podIP']}:8000/list_workers"
    with urllib.request.urlopen(url, timeout=5) as answer:
        return [str(each) for each in json.load(answer)["urls"]]
