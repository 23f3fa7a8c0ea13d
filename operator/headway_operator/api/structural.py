"""Turns pydantic's JSON schema into the structural schema that CustomResourceDefinitions need.

Structural schemas know neither references nor unions: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_DROPPED = frozenset({"$defs", "title", "examples"})


def structural_schema(model_schema: Schema) -> Schema:
    """The structural form of a schema made by ``BaseModel.model_json_schema``.

    Raises:
        ValueError: the schema holds a construct with no structural form.
    """
    return _structural(model_schema, model_schema.get("$defs", {}))


def _structural(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    schema = _without_null(_resolved(schema, definitions))
    if schema.get("x-kubernetes-int-or-string"):
        return {key: value for key, value in schema.items() if key not in _DROPPED}
    schema = _resolved(schema, definitions)
    result = {key: value for key, value in schema.items() if key not in _DROPPED}
    if "anyOf" in result or "$ref" in result or "propertyNames" in result:
        raise ValueError(f"no structural form: {sorted(result)}")
    if "properties" in result:
        result.pop("additionalProperties", None)
        result["properties"] = {
            name: _structural(child, definitions) for name, child in result["properties"].items()
        }
    for key in ("items", "additionalProperties"):
        if isinstance(result.get(key), dict):
            result[key] = _structural(result[key], definitions)
    return _tidy(result)


def _resolved(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """Put the definition in place of a reference; what stands beside the reference wins."""
    if "$ref" not in schema:
        return schema
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return {**definitions[schema["$ref"].rsplit("/", 1)[-1]], **beside}


def _without_null(schema: Schema) -> Schema:
    """``X | None`` is just an optional X: the API server drops nulls of such fields."""
    if schema.get("x-kubernetes-int-or-string") or "anyOf" not in schema:
        return schema
    choices = [choice for choice in schema["anyOf"] if choice.get("type") != "null"]
    if len(choices) != 1:
        raise ValueError(f"no structural form: a union of {len(choices)}")
    beside = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**choices[0], **beside}


def _tidy(schema: Schema) -> Schema:
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    if "default" in schema and schema["default"] in (None, []):
        del schema["default"]
    if "description" in schema:
        schema["description"] = " ".join(schema["description"].split())
    if schema.get("type") == "integer":
        schema["format"] = "int64"
    ordered = dict.fromkeys(("description", "type", *schema))
    return {key: schema[key] for key in ordered if key in schema}
