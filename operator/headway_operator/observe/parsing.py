"""Reads the spec of a stored InferenceService, which may predate the current CRD."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from headway_operator.api import InferenceServiceSpec
from headway_operator.observe.problems import shown
from headway_operator.observe.records import ServiceRecord

_MAX_FAULTS = 3


@dataclass(frozen=True)
class ParsedSpec:
    """A spec, or why it cannot be read."""

    spec: InferenceServiceSpec | None
    problem: str = ""


def parse_spec(service: ServiceRecord) -> ParsedSpec:
    """The spec of a service, or what is wrong with it."""
    try:
        return ParsedSpec(InferenceServiceSpec.model_validate(service.spec))
    except ValidationError as error:
        return ParsedSpec(None, _explanation(error))


def _explanation(error: ValidationError) -> str:
    """The fields and what is wrong with them; never their values, which may be secret."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    told = [f"spec.{_path(each['loc'])} ({shown('word', each['type'])})" for each in faults]
    more = f" and {len(told) - _MAX_FAULTS} more" if len(told) > _MAX_FAULTS else ""
    return f"The spec is not valid: {', '.join(told[:_MAX_FAULTS])}{more}"


def _path(location: tuple[int | str, ...]) -> str:
    return ".".join(
        str(part) if isinstance(part, int) else shown("word", part) for part in location
    )
