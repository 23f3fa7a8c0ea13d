from __future__ import annotations

import json
from typing import Any

import pytest

from headway_operator.decide.ownership import lost_field
from tests.unit.operator.samples import owned_fields, rendered

# As a real API server keeps it for the Service.
KEPT: dict[str, Any] = {
    "f:metadata": {
        "f:annotations": {"f:headway.dev/applied-hash": {}},
        "f:labels": {
            "f:app.kubernetes.io/component": {},
            "f:app.kubernetes.io/instance": {},
            "f:app.kubernetes.io/managed-by": {},
            "f:app.kubernetes.io/name": {},
            "f:headway.dev/service": {},
        },
        "f:ownerReferences": {'k:{"uid":"11111111-2222-3333-4444-555555555555"}': {}},
    },
    "f:spec": {
        "f:ports": {
            'k:{"port":80,"protocol":"TCP"}': {
                ".": {},
                "f:name": {},
                "f:port": {},
                "f:protocol": {},
                "f:targetPort": {},
            }
        },
        "f:selector": {},
        "f:type": {},
    },
}


def kept(*gone: str) -> str:
    """The kept ownership without one field, named by its keys."""
    tree = json.loads(json.dumps(KEPT))
    if gone:
        _remove(tree, gone)
    return json.dumps(tree)


def _remove(tree: dict[str, Any], path: tuple[str, ...]) -> None:
    """Remove a field, and what is left empty by it, as the API server does."""
    if len(path) > 1:
        _remove(tree[path[0]], path[1:])
    if len(path) == 1 or not tree[path[0]]:
        del tree[path[0]]


def test_nothing_is_lost_while_every_field_is_ours() -> None:
    assert lost_field(rendered()["Service"], kept()) is None


@pytest.mark.parametrize(
    ("gone", "path"),
    [
        (("f:spec", "f:type"), ".spec.type"),
        (("f:spec", "f:selector"), ".spec.selector"),
        (("f:spec",), ".spec"),
        (("f:metadata", "f:ownerReferences"), ".metadata.ownerReferences"),
        (
            ("f:metadata", "f:labels", "f:app.kubernetes.io/managed-by"),
            ".metadata.labels.app.kubernetes.io/managed-by",
        ),
        (("f:spec", "f:ports", 'k:{"port":80,"protocol":"TCP"}'), ".spec.ports"),
        (
            ("f:spec", "f:ports", 'k:{"port":80,"protocol":"TCP"}', "f:targetPort"),
            ".spec.ports[0].targetPort",
        ),
    ],
)
def test_field_that_somebody_took_is_named(gone: tuple[str, ...], path: str) -> None:
    assert lost_field(rendered()["Service"], kept(*gone)) == path


def test_defaulted_keys_of_a_list_item_are_not_missed() -> None:
    body = {"metadata": {}, "spec": {"ports": [{"containerPort": 1}]}}
    owned = {
        "f:metadata": {},
        "f:spec": {"f:ports": {'k:{"containerPort":1,"protocol":"TCP"}': {}}},
    }
    assert lost_field(body, json.dumps(owned)) is None


def test_items_of_a_set_are_compared_by_value() -> None:
    body = {"metadata": {"finalizers": ["a", "b"]}}
    owned = {"f:metadata": {"f:finalizers": {'v:"a"': {}}}}
    assert lost_field(body, json.dumps(owned)) == ".metadata.finalizers[1]"


def test_wiped_bookkeeping_is_noticed() -> None:
    assert lost_field(rendered()["Service"], "{}") == "."


def test_every_rendered_object_is_ours_right_after_it_was_applied() -> None:
    for body in rendered().values():
        fields = {key: value for key, value in body.items() if key not in {"kind", "apiVersion"}}
        assert lost_field(body, json.dumps(owned_fields(fields))) is None
