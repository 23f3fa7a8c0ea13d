from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.crd import custom_resource_definition
from headway_operator.api.flags import RESERVED_FLAGS, reserved_flag_rule
from headway_operator.api.structural import structural_schema
from tests.unit.operator.samples import spec

CRD = Path(__file__).parents[3] / "crds" / "inferenceservices.headway.dev.yaml"
CHART = Path(__file__).parents[3] / "charts" / "headway"
MAX_BYTES = 200_000


def schemas(node: Any) -> list[dict[str, Any]]:
    """Every schema object in a CRD."""
    if isinstance(node, list):
        return [found for item in node for found in schemas(item)]
    if not isinstance(node, dict):
        return []
    below = [found for key, child in node.items() if key != "anyOf" for found in schemas(child)]
    return [node, *below] if isinstance(node.get("type"), str) else below


def root() -> dict[str, Any]:
    version = custom_resource_definition()["spec"]["versions"][0]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


def test_committed_definition_is_generated_from_the_models() -> None:
    assert yaml.safe_load(CRD.read_text("utf-8")) == custom_resource_definition()


def test_chart_installs_the_committed_definition() -> None:
    assert (CHART / "files" / CRD.name).read_bytes() == CRD.read_bytes()


def test_definition_stays_small() -> None:
    assert len(json.dumps(custom_resource_definition())) < MAX_BYTES
    assert CRD.stat().st_size < MAX_BYTES


def test_schema_is_structural() -> None:
    for schema in schemas(root()):
        assert not {"$ref", "$defs", "title", "allOf", "oneOf", "const"} & set(schema)
        assert "anyOf" not in schema or schema["x-kubernetes-int-or-string"]


def test_everything_a_user_writes_is_bounded() -> None:
    for schema in schemas(root()["properties"]["spec"]):
        kind = schema["type"]
        if kind == "string":
            assert "maxLength" in schema or "enum" in schema, schema
        if kind == "array":
            assert "maxItems" in schema, schema
            assert "x-kubernetes-list-type" in schema, schema
        if kind == "integer":
            assert {"minimum", "maximum"} <= set(schema), schema
        if isinstance(schema.get("additionalProperties"), dict):
            assert "maxProperties" in schema, schema


def test_every_field_is_described() -> None:
    for schema in schemas(root()["properties"]["spec"]):
        for name, field in schema.get("properties", {}).items():
            assert field.get("description"), name


def test_defaults_are_visible_also_where_the_block_is_left_out() -> None:
    properties = root()["properties"]["spec"]["properties"]
    assert properties["replicas"]["default"] == 1
    assert properties["scheduling"]["default"] == {}
    assert properties["scheduling"]["properties"]["mode"]["default"] == "Act"
    assert properties["engine"]["properties"]["startupTimeoutSeconds"]["default"] == 1800


def test_a_default_that_rules_apply_to_is_written_in_full() -> None:
    """The API server holds it against them before it fills in the defaults of its fields."""
    ruled = [
        each
        for each in schemas(root()["properties"]["spec"])
        if "x-kubernetes-validations" in each and "default" in each
    ]
    assert ruled
    for schema in ruled:
        defaulted = {name for name, each in schema["properties"].items() if "default" in each}
        assert defaulted <= set(schema["default"])


def test_defaults_of_the_models_are_those_of_the_definition() -> None:
    read = InferenceServiceSpec.model_validate(spec())
    assert (read.replicas, read.scheduling.mode, read.engine.max_num_seqs) == (1, "Act", 1024)


@pytest.mark.parametrize(
    "argument",
    [
        "--max-num-seqs",
        "--max-num-seqs=4",
        "--max_num_seqs",
        "--max_num_batched_tokens=1",
        "-tp",
        "-tp=2",
        "--tensor-parallel-size",
        "--port",
        "--host=0.0.0.0",
        "--ssl-keyfile",
        "--ssl_certfile=x",
        "--data-parallel-size",
        "-dpr",
        "--scheduler-cls=a.B",
        "--scheduling-policy",
        "--async-scheduling",
        "--no-async-scheduling",
        "--model",
        "--served-model-name=x",
        "--config",
        "--middleware",
        "--shutdown-timeout",
    ],
)
def test_reserved_flag_is_refused_in_every_form(argument: str) -> None:
    assert refused(argument)


@pytest.mark.parametrize(
    "argument",
    [
        "--max-model-len",
        "--model-impl=auto",
        "--dtype",
        "7",
        "--port-range=1",
        "max-num-seqs",
        "-O3",
    ],
)
def test_other_arguments_are_allowed(argument: str) -> None:
    assert not refused(argument)


def refused(argument: str) -> bool:
    """Whether a CEL rule would refuse it; RE2 and Python agree on these patterns."""
    patterns = (re.search(r"matches\('(.*)'\)", reserved_flag_rule(f)[0]) for f in RESERVED_FLAGS)
    return any(re.search(found[1], argument) for found in patterns if found)


def test_quantities_may_be_integers() -> None:
    fields = spec(engine={"resources": {"limits": {"cpu": 2, "memory": "4Gi"}}})
    resources = InferenceServiceSpec.model_validate(fields).engine.resources
    assert resources is not None
    assert resources.limits == {"cpu": "2", "memory": "4Gi"}


def test_fields_of_a_newer_release_are_ignored() -> None:
    assert InferenceServiceSpec.model_validate({**spec(), "later": 1}).replicas == 1


def test_out_of_bounds_is_refused_by_the_models_too() -> None:
    with pytest.raises(ValidationError):
        InferenceServiceSpec.model_validate(spec(replicas=1001))


def test_union_has_no_structural_form() -> None:
    with pytest.raises(ValueError, match="union"):
        structural_schema({"anyOf": [{"type": "string"}, {"type": "integer"}]})
