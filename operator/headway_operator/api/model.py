"""``spec.model``, and where any model comes from."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from headway_operator.api.base import ApiModel, Rule, rules
from headway_operator.api.scalars import DataKey, ObjectName

_HF = r"^hf://[A-Za-z0-9][-A-Za-z0-9._]*/[A-Za-z0-9][-A-Za-z0-9._]*$"
_PVC = r"^pvc://[a-z0-9]([-a-z0-9.]*[a-z0-9])?(/[-A-Za-z0-9._]+)*/?$"


class TokenSecret(ApiModel):
    """A key of a Secret in the same namespace."""

    name: ObjectName
    """Name of the Secret."""

    key: DataKey
    """Key in the Secret's data."""


class ModelSource(ApiModel):
    """Where a model comes from."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                f"self.uri.matches('{_HF}') || self.uri.matches('{_PVC}')",
                "model.uri must be hf://organisation/name or pvc://claim/path/in/claim",
            ),
            Rule("!self.uri.contains('/..')", "model.uri must not contain '..'"),
            Rule(
                "self.uri.startsWith('hf://') || (!has(self.revision) && !has(self.tokenSecret) "
                "&& !has(self.cacheClaim))",
                "model.revision, model.tokenSecret and model.cacheClaim are for hf:// models: "
                "remove them or use an hf:// uri",
            ),
        )
    )

    uri: Annotated[str, Field(min_length=1, max_length=512)]
    """`hf://organisation/name` for the Hugging Face Hub, or `pvc://claim/path/in/claim`."""

    revision: (
        Annotated[
            str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][-A-Za-z0-9._/]*$")
        ]
        | None
    ) = None
    """Branch, tag or commit of an hf:// model."""

    token_secret: TokenSecret | None = None
    """Hub token for an hf:// model that needs one."""

    cache_claim: ObjectName | None = None
    """PersistentVolumeClaim that keeps downloaded files of an hf:// model between pods."""


class Model(ModelSource):
    """The model to serve. A change replaces the pods."""

    served_name: (
        Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[-A-Za-z0-9._/:]+$")] | None
    ) = None
    """Name that requests use for the model; the InferenceService's own name when absent."""
