"""How many API servers an engine has, and how they are started and stopped."""

from __future__ import annotations

from typing import Any

import pytest

from headway_operator.api import InferenceServiceSpec
from headway_operator.render.api_servers import MOST_API_SERVERS, api_servers
from headway_operator.render.arguments import engine_arguments, engine_command
from tests.unit.operator.samples import spec

ONE, SEVERAL = "vllm.entrypoints.openai.api_server", "headway_runtime.executors.vllm.serve"


def parsed(gpus: int = 1, **engine: Any) -> InferenceServiceSpec:
    """The spec of a service whose engine runs on so many GPUs."""
    resources = engine.pop("resources", {})
    if gpus:
        limits = {**resources.get("limits", {}), "nvidia.com/gpu": str(gpus)}
        resources = {**resources, "limits": limits}
    fields = {"resources": resources, "tensorParallelSize": max(1, gpus), **engine}
    return InferenceServiceSpec.model_validate(spec(engine=fields))


def count(gpus: int = 1, **engine: Any) -> int:
    return api_servers(parsed(gpus, **engine).engine)


def limited(cpu: str | None = None, memory: str | None = None) -> dict[str, Any]:
    values = {"cpu": cpu, "memory": memory}
    return {"limits": {name: value for name, value in values.items() if value is not None}}


@pytest.mark.parametrize(
    ("gpus", "cpu", "memory", "expected"),
    [
        # Whose cores are not limited may use those of its node.
        (1, None, None, MOST_API_SERVERS),
        (8, None, "640Gi", MOST_API_SERVERS),
        # The engine keeps a core busy.
        (1, "4", None, 3),
        (1, "2500m", None, 1),
        (1, "500m", None, 1),
        (1, "64", None, MOST_API_SERVERS),
        # So does each of its workers.
        (4, "8", None, 3),
        (8, "8", None, 1),
        (1, None, "64Gi", MOST_API_SERVERS),
        (1, None, "24Gi", 3),
        (1, "64", "8Gi", 1),
        (1, "64", "1Gi", 1),
        # On CPUs the model computes with all cores.
        (0, "64", "640Gi", 1),
        (0, None, None, 1),
    ],
)
def test_as_many_as_have_cores_and_memory(
    gpus: int, cpu: str | None, memory: str | None, expected: int
) -> None:
    assert count(gpus, resources=limited(cpu, memory)) == expected


def test_what_is_reserved_counts_where_nothing_is_limited() -> None:
    reserved = {"cpu": "3", "memory": "64Gi"}
    assert count(resources={"requests": reserved}) == 2
    assert count(resources={**limited(cpu="5"), "requests": reserved}) == 4


def test_a_service_without_resources_has_one() -> None:
    assert api_servers(InferenceServiceSpec.model_validate(spec()).engine) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--api-server-count", "2"],
        ["--api_server_count=2"],
        ["--api-server-c", "2"],
        ["-asc", "2"],
        ["-asc=2"],
        ["--api-server-count=8", "--api-server-count", "2"],
    ],
)
@pytest.mark.parametrize("gpus", [0, 1])
def test_a_user_may_choose(arguments: list[str], gpus: int) -> None:
    service = parsed(gpus, args=arguments)
    assert api_servers(service.engine) == 2
    rendered = engine_arguments("demo", service)
    assert rendered[-len(arguments) :] == arguments
    assert [each for each in rendered if "api" in each] == [
        each for each in arguments if "api" in each
    ]


def test_one_may_be_chosen_too() -> None:
    service = parsed(args=["--api-server-count=1"])
    assert ONE in engine_command(service)[2]
    assert engine_arguments("demo", service)[-1] == "--api-server-count=1"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--enable-fault-tolerance"],
        ["--enable_elastic_ep"],
        ["--max-num-queued-reqs=100"],
        ["--max-num-queued-tok", "100"],
        ["--mm-processor-cache-type", "shm"],
        ["--enable-server-load-tracking"],
        ["--grpc"],
    ],
)
def test_what_works_with_one_only_keeps_one(arguments: list[str]) -> None:
    assert count(args=arguments) == 1
    assert count(args=["--enable-prefix-caching", "--mm-processor-cache-gb=2", "grpc", "-q"]) > 1


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ({"value": "1"}, True),
        ({"value": "True"}, True),
        ({"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}, True),
        ({"value": "0"}, False),
        ({"value": "false"}, False),
        ({}, False),
    ],
)
def test_what_an_environment_allows_with_one_only_keeps_one(
    value: dict[str, Any], is_one: bool
) -> None:
    found = count(env=[{"name": "VLLM_ALLOW_RUNTIME_LORA_UPDATING", **value}])
    assert (found == 1) is is_one


def test_several_are_started_by_vllms_own_command() -> None:
    service = parsed(resources=limited(cpu="3"))
    arguments = engine_arguments("demo", service)
    assert arguments[-2:] == ["--api-server-count", "2"]
    assert SEVERAL in engine_command(service)[2]
    alone = parsed(resources=limited(cpu="2"))
    assert "--api-server-count" not in engine_arguments("demo", alone)
    assert ONE in engine_command(alone)[2]
