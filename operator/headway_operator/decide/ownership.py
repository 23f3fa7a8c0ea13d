"""Whether every field we applied is still ours, from the API server's own bookkeeping.

Server-side apply records who owns each field as a tree of keys: ``f:name`` for a field, ``k:{...}``
for an item of a list merged by keys, ``v:...`` for one of a set; a leaf ends in ``{}``.
https://github.com/kubernetes-sigs/structured-merge-diff/blob/master/fieldpath/serialize.go
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

# Identity of the object: the API server keeps no ownership of these.
_IDENTITY = frozenset({"apiVersion", "kind"})
_METADATA_IDENTITY = frozenset({"name", "namespace"})


def lost_field(body: Mapping[str, Any], owned_fields: str) -> str | None:
    """Path of the first field of an applied object that we no longer own; None if we own all."""
    owned = json.loads(owned_fields)
    if not owned:
        return "."  # the bookkeeping itself was wiped
    fields = {key: value for key, value in body.items() if key not in _IDENTITY}
    metadata = {k: v for k, v in body["metadata"].items() if k not in _METADATA_IDENTITY}
    return next(_lost({**fields, "metadata": metadata}, owned, ""), None)


def _lost(value: Any, owned: Mapping[str, Any], path: str) -> Iterator[str]:
    if not owned or not isinstance(value, Mapping):
        return  # a leaf, or a part that is owned as a whole
    for key, child in value.items():
        where = f"{path}.{key}"
        below = owned.get(f"f:{key}")
        if below is None:
            yield where
        elif isinstance(child, (list, tuple)):
            yield from _lost_items(child, below, where)
        else:
            yield from _lost(child, below, where)


def _lost_items(
    items: list[Any] | tuple[Any, ...], owned: Mapping[str, Any], path: str
) -> Iterator[str]:
    if not owned:
        return
    for at, item in enumerate(items):
        where = f"{path}[{at}]"
        below = _item_of(item, owned)
        if below is None:
            yield where
        else:
            yield from _lost(item, below, where)


def _item_of(item: Any, owned: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The tree of a list's item: found by its keys, or by its value in a set."""
    for key, below in owned.items():
        marker, _, text = key.partition(":")
        if marker == "v" and json.loads(text) == item:
            return {}
        if marker == "k" and isinstance(item, Mapping) and _has_keys(item, json.loads(text)):
            tree: Mapping[str, Any] = below
            return tree
    return None


def _has_keys(item: Mapping[str, Any], keys: Mapping[str, Any]) -> bool:
    """Keys that we left to their defaults are the API server's to fill in."""
    return all(item.get(name, value) == value for name, value in keys.items())
