"""What the API server itself refuses, with the message a user sees."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.kube import Cluster, KubectlError

pytestmark = pytest.mark.cluster

TABLE = yaml.safe_load(Path(__file__).with_name("bad_objects.yaml").read_text())
CASES = {case["name"]: case for case in TABLE["cases"]}


def merged(document: Any, change: Any) -> Any:
    """JSON merge patch."""
    if not isinstance(change, dict):
        return change
    result = dict(document) if isinstance(document, dict) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def dry_run(cluster: Cluster, document: dict[str, Any]) -> dict[str, Any]:
    text = cluster.kubectl(
        *("create", "-n", "default", "--dry-run=server", "-o", "json", "-f", "-"),
        stdin=json.dumps(document),
    )
    return dict(json.loads(text))


def test_the_valid_object_of_the_table_is_valid(operator: Cluster) -> None:
    dry_run(operator, TABLE["valid"])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_bad_object_is_refused_with_a_message_that_helps(
    operator: Cluster, case: dict[str, Any]
) -> None:
    document = merged(copy.deepcopy(TABLE["valid"]), case["change"])
    with pytest.raises(KubectlError) as refusal:
        dry_run(operator, document)
    for part in case["message"]:
        assert part in str(refusal.value)


def test_defaults_are_visible_on_the_stored_object(operator: Cluster) -> None:
    minimal = merged(TABLE["valid"], {"spec": {"scheduling": None, "classes": None}})
    del minimal["spec"]["defaultClass"], minimal["spec"]["engine"]["maxNumSeqs"]
    del minimal["spec"]["engine"]["maxNumBatchedTokens"]
    spec = dry_run(operator, minimal)["spec"]
    assert spec["replicas"] == 1
    priority = {"basePercent": 50, "depthPercent": 30, "progressPercent": 20, "learn": False}
    assert spec["scheduling"] == {"mode": "Act", "fairnessWindow": 100, "priority": priority}
    assert spec["scaling"] == {
        "mode": "External",
        "minReplicas": 1,
        "maxReplicas": 10,
        "targetLoadPercent": 80,
        "forecastSeconds": 60,
        "stabilizationSeconds": 300,
        "idleSeconds": 600,
        "activator": {
            "replicas": 2,
            "maxHeldRequests": 100,
            "maxHeldMebibytes": 64,
            "holdSeconds": 600,
        },
        "priority": 0,
    }
    assert spec["router"] == {
        "enabled": False,
        "policy": "RoundRobin",
        "replicas": 2,
        "retries": 6,
        "drainSeconds": 300,
    }
    assert spec["trustHeaders"] is False
    assert spec["engine"]["maxNumSeqs"] == 1024
    assert spec["engine"]["maxNumBatchedTokens"] == 8192
    assert spec["engine"]["startupTimeoutSeconds"] == 1800


def test_defaults_of_classes_and_tenants_are_visible(operator: Cluster) -> None:
    shared = {"trustHeaders": True, "tenants": [{"name": "red"}]}
    spec = dry_run(operator, merged(TABLE["valid"], {"spec": shared}))["spec"]
    assert spec["classes"] == [
        {"name": "interactive", "ttftMilliseconds": 500, "weight": 1, "whenUnmet": "Queue"}
    ]
    assert spec["tenants"] == [{"name": "red", "weight": 1}]


def test_as_many_tenants_as_may_be_are_admitted_each_with_a_key(operator: Cluster) -> None:
    tenants = [{"name": f"t{number}", "apiKeySHA256": f"{number:064x}"} for number in range(64)]
    dry_run(operator, merged(TABLE["valid"], {"spec": {"tenants": tenants}}))


def test_a_whole_ladder_is_admitted_and_so_is_none(operator: Cluster) -> None:
    steps = ("ShedClasses", "LowerLimits", "SmallerMemory", "FewerReplicas")
    fallback = {"step": "FallbackModel", "model": {"uri": "hf://org/smaller", "revision": "main"}}
    ladder = [*({"step": each, "afterSeconds": 0} for each in steps), fallback]
    for each in (ladder, []):
        stored = dry_run(operator, merged(TABLE["valid"], {"spec": {"degradation": each}}))
        assert stored["spec"]["degradation"] == each


@pytest.mark.parametrize("promise", [{"ttftMilliseconds": 500}, {"deadlineSeconds": 60}])
def test_a_class_with_an_objective_may_shed(operator: Cluster, promise: dict[str, int]) -> None:
    shedding = {"name": "interactive", "whenUnmet": "Shed", "maxQueued": 100, **promise}
    dry_run(operator, merged(TABLE["valid"], {"spec": {"classes": [shedding]}}))


def test_a_client_without_strict_validation_gets_the_unknown_field_pruned(
    operator: Cluster,
) -> None:
    document = merged(TABLE["valid"], {"spec": {"gpus": 4}})
    text = operator.kubectl(
        *("create", "-n", "default", "--dry-run=server", "--validate=false"),
        *("-o", "json", "-f", "-"),
        stdin=json.dumps(document),
    )
    assert "gpus" not in json.loads(text)["spec"]


@pytest.mark.parametrize("example", ["chat.yaml", "gpu-chat.yaml", "tenants.yaml"])
def test_every_example_is_admitted(operator: Cluster, example: str) -> None:
    path = Path(__file__).parents[2] / "examples" / example
    operator.kubectl(
        "apply", "-n", "default", "--dry-run=server", "--validate=strict", "-f", str(path)
    )
