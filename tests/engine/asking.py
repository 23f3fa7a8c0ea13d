"""Requests to an engine or its sidecar, and what comes back."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PATIENCE_S = 300


@dataclass(frozen=True)
class Answer:
    """What came back of a request.

    Attributes:
        status: HTTP status.
        headers: by name in lower case.
        document: the body.
    """

    status: int
    headers: Mapping[str, str]
    document: Any


def ask(
    url: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    method: str | None = None,
) -> Answer:
    """Send a request and wait for its answer, whatever its status.

    Raises:
        OSError: there is none.
    """
    request = urllib.request.Request(url, body, dict(headers or {}), method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            return _answer(response)
    except urllib.error.HTTPError as response:
        with response:
            return _answer(response)


def _answer(response: Any) -> Answer:
    content = response.read().decode()
    headers = {key.lower(): value for key, value in response.headers.items()}
    is_json = headers.get("content-type", "").startswith("application/json")
    return Answer(response.status, headers, json.loads(content) if is_json else content)
