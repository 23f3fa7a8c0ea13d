"""Prints what would be applied for the InferenceServices in a file; asks no cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from headway_operator.api import API_VERSION, KIND, InferenceServiceSpec
from headway_operator.api.crd import to_yaml
from headway_operator.render import Blueprint, render_children

_UID = "00000000-0000-0000-0000-000000000000"


def rendered(document: dict[str, Any], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The objects of one InferenceService.

    Raises:
        pydantic.ValidationError: its spec is not valid.
    """
    metadata = document.get("metadata", {})
    spec = InferenceServiceSpec.model_validate(document.get("spec", {}), extra="forbid")
    yield from render_children(
        Blueprint(
            namespace=metadata.get("namespace", "default"),
            name=metadata["name"],
            uid=metadata.get("uid", _UID),
            generation=metadata.get("generation", 1),
            spec=spec,
            runtime_image=options.runtime_image,
            operator_namespace=options.operator_namespace,
            public_keys=(),
            router_replicas=spec.router.replicas if spec.router.enabled else None,
            router_image=options.router_image,
            activator_replicas=spec.scaling.activator.replicas
            if spec.scaling.may_be_zero
            else None,
        )
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m headway_operator.render",
        description="Print the objects Headway would apply for the InferenceServices in FILE. "
        "The cluster is not asked; keys and uids are left empty.",
    )
    parser.add_argument("file", help="YAML file, or - for standard input")
    parser.add_argument("--runtime-image", default="headway-runtime:unset", metavar="IMAGE")
    parser.add_argument("--router-image", default="headway-router:unset", metavar="IMAGE")
    parser.add_argument("--operator-namespace", default="headway-system", metavar="NAMESPACE")
    return parser.parse_args()


def main() -> None:
    """Command line; exits with 1 and the reason when an InferenceService is not valid."""
    options = _arguments()
    text = sys.stdin.read() if options.file == "-" else Path(options.file).read_text("utf-8")
    documents = [each for each in yaml.safe_load_all(text) if isinstance(each, dict)]
    services = [d for d in documents if (d.get("apiVersion"), d.get("kind")) == (API_VERSION, KIND)]
    if not services:
        sys.exit(f"{options.file}: holds no {KIND} of {API_VERSION}")
    try:
        children = [child for service in services for child in rendered(service, options)]
    except ValidationError as error:
        sys.exit(f"{options.file}: {error}")
    sys.stdout.writelines("---\n" + to_yaml(child) for child in children)
