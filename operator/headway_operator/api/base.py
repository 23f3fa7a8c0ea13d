"""What every part of the custom resource has in common."""

from __future__ import annotations

from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class ApiModel(BaseModel):
    """A part of the custom resource: immutable, camelCase outside, documented by its docstrings.

    Fields this release does not know are ignored, so that an object written under a newer CRD
    can still be read after the operator was rolled back.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        frozen=True,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )

    def to_kubernetes(self) -> dict[str, Any]:
        """The object as Kubernetes writes it: camelCase keys, absent where nothing was said."""
        return self.model_dump(by_alias=True, exclude_defaults=True, mode="json")


def list_map(*keys: str) -> dict[str, Any]:
    """Schema extension: a list whose items are merged by these keys."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}
"""Schema extension: a list that is replaced as a whole, because its order matters."""


class Rule(NamedTuple):
    """A CEL validation rule.

    Attributes:
        expression: true for valid objects.
        message: what a user sees otherwise: the field and the remedy.
    """

    expression: str
    message: str


def rules(*checks: Rule) -> dict[str, Any]:
    """Schema extension: CEL rules of an object."""
    listed = [{"rule": check.expression, "message": check.message} for check in checks]
    return {"x-kubernetes-validations": listed}
