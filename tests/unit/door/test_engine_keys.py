"""Which keys the engine asks for."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import Any

import pytest

from headway_runtime.door.engine_keys import accepted_digests

OF_ENVIRONMENT = {"VLLM_API_KEY": "env"}


def app(api_key: Any) -> Any:
    return SimpleNamespace(state=SimpleNamespace(args=SimpleNamespace(api_key=api_key)))


def digests(*keys: str) -> frozenset[str]:
    return frozenset(hashlib.sha256(key.encode()).hexdigest() for key in keys)


@pytest.mark.parametrize(
    ("api_key", "environment", "keys"),
    [
        (None, {}, ()),
        ([], {}, ()),
        ([""], OF_ENVIRONMENT, ()),
        (["a", "b"], OF_ENVIRONMENT, ("a", "b")),
        ("a", {}, ("a",)),
        (None, OF_ENVIRONMENT, ("env",)),
        ([], OF_ENVIRONMENT, ("env",)),
        ([None, 7], OF_ENVIRONMENT, ()),
    ],
)
def test_arguments_count_before_the_environment(
    api_key: Any, environment: dict[str, str], keys: tuple[str, ...]
) -> None:
    assert accepted_digests(app(api_key), environment) == digests(*keys)


@pytest.mark.parametrize("unknown", [None, object(), SimpleNamespace(state=object())])
def test_an_application_that_tells_nothing_has_the_keys_of_the_environment(unknown: Any) -> None:
    assert accepted_digests(unknown, {}) == frozenset()
    assert accepted_digests(unknown, OF_ENVIRONMENT) == digests("env")
