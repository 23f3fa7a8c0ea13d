"""Scalar types of the custom resource: each with the bounds the API server enforces."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

QUANTITY_PATTERN = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][0-9]{1,2})?$"

DnsLabel = Annotated[
    str, StringConstraints(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
]
"""RFC 1123 label: names of classes and volumes."""

ObjectName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"),
]
"""RFC 1123 subdomain: the name of another object in the namespace."""

DataKey = Annotated[
    str, StringConstraints(min_length=1, max_length=253, pattern=r"^[-._a-zA-Z0-9]+$")
]
"""Key in a Secret or a ConfigMap."""

EnvName = Annotated[
    str, StringConstraints(min_length=1, max_length=256, pattern=r"^[-._a-zA-Z][-._a-zA-Z0-9]*$")
]
"""Name of an environment variable."""

ImageReference = Annotated[str, StringConstraints(min_length=1, max_length=512, pattern=r"^\S+$")]
"""Container image, with a tag or a digest."""

MountPath = Annotated[
    str, StringConstraints(min_length=2, max_length=512, pattern=r"^/[^:]*[^:/]$")
]
"""Absolute path in a container."""

RelativePath = Annotated[str, StringConstraints(min_length=1, max_length=512, pattern=r"^[^/].*$")]
"""Path below a volume's root."""

QualifiedName = Annotated[
    str,
    StringConstraints(
        min_length=1,
        max_length=317,
        pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
    ),
]
"""Key of a label, an annotation or a taint."""

LabelValue = Annotated[
    str, StringConstraints(max_length=63, pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$")
]

Argument = Annotated[str, StringConstraints(max_length=2048)]
"""One command-line argument."""

UserId = Annotated[int, Field(ge=1, le=2**31 - 1)]
"""A uid or gid other than root's."""


def _integer_as_text(value: Any) -> Any:
    """Quantities may be written as integers; everything after the boundary sees text."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Quantity = Annotated[
    str,
    StringConstraints(min_length=1, max_length=32, pattern=QUANTITY_PATTERN),
    BeforeValidator(_integer_as_text),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "maxLength": 32,
            "pattern": QUANTITY_PATTERN,
            "x-kubernetes-int-or-string": True,
        }
    ),
]
"""Kubernetes resource quantity such as ``500m``, ``16Gi`` or ``1``."""
