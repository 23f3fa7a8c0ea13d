from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.labels import APPLIED_HASH, TEMPLATE_LABEL
from headway_operator.render import render_children
from headway_operator.render.arguments import DOOR_CLASS, engine_arguments
from headway_operator.render.model import ModelLocation, locate
from headway_operator.render.quantity import half_in_mebibytes, in_bytes
from headway_runtime.policy import Mode, Stamp, decode
from tests.unit.operator.samples import UID, blueprint, rendered, spec

LIVE = st.fixed_dictionaries(
    {
        "scheduling": st.fixed_dictionaries(
            {"mode": st.sampled_from(["Act", "Shadow", "Off"])},
            optional={
                "maxBatchSize": st.integers(1, 1024),
                "tokenBudget": st.integers(1, 8192),
                "fairnessWindow": st.integers(1, 10_000),
                "priority": st.just({"basePercent": 0, "depthPercent": 80, "learn": True}),
            },
        ),
        "classes": st.lists(
            st.fixed_dictionaries(
                {"name": st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)},
                optional={
                    "ttftMilliseconds": st.integers(1, 3_600_000),
                    "weight": st.integers(1, 100),
                    "whenUnmet": st.sampled_from(["Queue", "Shed"]),
                    "maxQueued": st.integers(1, 100_000),
                },
            ),
            max_size=4,
            unique_by=lambda each: each["name"],
        ),
        "tenants": st.lists(st.just({"name": "team", "apiKeySHA256": "0" * 64}), max_size=1),
        "trustHeaders": st.booleans(),
        "replicas": st.integers(0, 1000),
    }
)


def template(fields: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = rendered(fields)["Deployment"]["spec"]["template"]
    return found


def containers(fields: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    pod = template(fields or spec())["spec"]
    return {each["name"]: each for each in (*pod["initContainers"], *pod["containers"])}


@given(LIVE)
def test_rendering_is_deterministic(live: dict[str, Any]) -> None:
    first, second = (json.dumps(render_children(blueprint(spec(**live)))) for _ in range(2))
    assert first == second


@given(LIVE)
def test_what_is_applied_live_replaces_no_pod(live: dict[str, Any]) -> None:
    assert template(spec(**live)) == template(spec())


def test_policy_config_map_is_in_no_pod_template_hash() -> None:
    old, new = (rendered(generation=generation) for generation in (1, 2))
    assert old["ConfigMap"] != new["ConfigMap"]
    assert old["Deployment"] == new["Deployment"]


@pytest.mark.parametrize(
    "change",
    [
        {"model": {"uri": "pvc://models/other"}},
        {"engine": {"image": "other"}},
        {"engine": {"args": ["--enforce-eager"]}},
        {"engine": {"env": [{"name": "A", "value": "1"}]}},
        {"engine": {"maxNumSeqs": 7}},
        {"engine": {"resources": {"limits": {"memory": "1Gi"}}}},
        {"engine": {"podLabels": {"a": "b"}}},
    ],
)
def test_what_a_pod_is_made_of_replaces_it(change: dict[str, Any]) -> None:
    old, new = template(spec()), template(spec(**change))
    labels = [each["metadata"]["labels"][TEMPLATE_LABEL] for each in (old, new)]
    assert labels[0] != labels[1]


def test_children_are_applied_with_what_pods_need_first() -> None:
    kinds = [child["kind"] for child in render_children(blueprint())]
    assert kinds == [
        "ConfigMap",
        "NetworkPolicy",
        "Service",
        "PodDisruptionBudget",
        "Deployment",
    ]


def test_children_are_owned_and_labelled() -> None:
    for child in rendered().values():
        owner = child["metadata"]["ownerReferences"][0]
        assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (
            UID,
            True,
            False,
        )
        assert child["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "headway"
        assert child["metadata"]["annotations"][APPLIED_HASH]
        assert "finalizers" not in child["metadata"]


def test_selector_does_not_depend_on_anything_that_changes() -> None:
    selector = rendered()["Deployment"]["spec"]["selector"]["matchLabels"]
    assert selector == {"headway.dev/service": "demo", "app.kubernetes.io/component": "engine"}


def test_containers_start_in_order() -> None:
    assert list(containers()) == ["install-runtime", "preflight", "headway-sidecar", "engine"]
    assert containers()["headway-sidecar"]["restartPolicy"] == "Always"


def test_every_container_is_restricted() -> None:
    pod = template(spec())["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in containers().values():
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
    kinds = {next(iter(set(volume) - {"name"})) for volume in pod["volumes"]}
    assert kinds <= {"emptyDir", "configMap", "persistentVolumeClaim", "secret", "csi"}


def test_platform_assigned_ids_are_left_to_the_platform() -> None:
    context = template(spec(engine={"podSecurity": "PlatformAssigned"}))["spec"]["securityContext"]
    assert not {"runAsUser", "runAsGroup", "fsGroup"} & set(context)


def test_user_arguments_come_after_ours() -> None:
    fields = spec(engine={"args": ["--dtype", "float32"], "tensorParallelSize": 2})
    arguments = engine_arguments("demo", InferenceServiceSpec.model_validate(fields))
    assert arguments[:2] == ["--model", "/models/models/tiny"]
    assert arguments[-2:] == ["--dtype", "float32"]
    assert arguments[arguments.index("--tensor-parallel-size") + 1] == "2"
    assert arguments[arguments.index("--served-model-name") + 1] == "demo"
    assert arguments[arguments.index("--middleware") + 1] == DOOR_CLASS


def test_preflight_sees_what_the_engine_sees() -> None:
    found = containers(spec(engine={"args": ["--x"], "env": [{"name": "A", "value": "1"}]}))
    preflight, engine = found["preflight"], found["engine"]
    assert preflight["args"][preflight["args"].index("--") + 1 :] == engine["args"]
    assert preflight["env"] == engine["env"]
    assert preflight["volumeMounts"] == engine["volumeMounts"]
    assert preflight["image"] == engine["image"]


def test_user_environment_wins_and_no_name_appears_twice() -> None:
    env = containers(spec(engine={"env": [{"name": "HF_HOME", "value": "/x"}]}))["engine"]["env"]
    names = [each["name"] for each in env]
    assert len(names) == len(set(names))
    assert {"name": "HF_HOME", "value": "/x"} in env


def test_hub_model_has_revision_token_and_cache() -> None:
    model = {
        "uri": "hf://org/name",
        "revision": "abc",
        "tokenSecret": {"name": "hub", "key": "token"},
        "cacheClaim": "cache",
    }
    engine = containers(spec(model=model))["engine"]
    assert engine["args"][1] == "org/name"
    assert engine["args"][engine["args"].index("--revision") + 1] == "abc"
    token = {"secretKeyRef": {"name": "hub", "key": "token"}}
    assert {"name": "HF_TOKEN", "valueFrom": token} in engine["env"]
    mounts = {each["name"]: each["mountPath"] for each in engine["volumeMounts"]}
    assert {"name": "HF_HOME", "value": mounts["headway-cache"]} in engine["env"]


def test_shared_memory_is_paid_by_the_engines_limit() -> None:
    fields = spec(engine={"resources": {"limits": {"memory": "16Gi"}}})
    shm = next(v for v in template(fields)["spec"]["volumes"] if v["name"] == "shm")
    assert shm["emptyDir"] == {"medium": "Memory", "sizeLimit": "8192Mi"}
    assert next(v for v in template(spec())["spec"]["volumes"] if v["name"] == "shm")[
        "emptyDir"
    ] == {"medium": "Memory"}


def test_grace_period_covers_drain_and_shutdown() -> None:
    fields = spec(engine={"drainSeconds": 60, "shutdownTimeoutSeconds": 20})
    assert template(fields)["spec"]["terminationGracePeriodSeconds"] == 90
    drain = containers(fields)["engine"]["lifecycle"]["preStop"]["exec"]["command"]
    assert drain[-2:] == ["--timeout", "60"]


def test_startup_probe_lasts_as_long_as_a_model_may_take() -> None:
    probe = containers(spec(engine={"startupTimeoutSeconds": 601}))["engine"]["startupProbe"]
    assert probe["failureThreshold"] * probe["periodSeconds"] >= 601
    assert rendered()["Deployment"]["spec"]["progressDeadlineSeconds"] == 1800


def test_rollout_never_takes_a_pod_away_first() -> None:
    strategy = rendered()["Deployment"]["spec"]["strategy"]
    assert strategy["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


def test_policy_port_is_open_to_the_operator_alone() -> None:
    ingress = rendered()["NetworkPolicy"]["spec"]["ingress"]
    open_ports = {port["port"] for rule in ingress if "from" not in rule for port in rule["ports"]}
    guarded = [rule for rule in ingress if "from" in rule]
    assert open_ports == {8000, 8901}
    assert [port["port"] for port in guarded[0]["ports"]] == [8900]
    namespace = guarded[0]["from"][0]["namespaceSelector"]["matchLabels"]
    assert namespace == {"kubernetes.io/metadata.name": "headway-system"}


def test_baseline_policy_says_what_the_spec_says() -> None:
    fields = spec(
        classes=[
            {"name": "chat", "ttftMilliseconds": 500},
            {"name": "bulk", "deadlineSeconds": 60},
        ],
        defaultClass="bulk",
        scheduling={"mode": "Shadow", "maxBatchSize": 9},
    )
    data = rendered(fields, generation=3)["ConfigMap"]["data"]
    policy = decode(data["baseline.json"].encode())
    assert policy.stamp == Stamp(3, 0, 0)
    assert (policy.mode, policy.max_batch_size, policy.default_class) == (Mode.SHADOW, 9, "bulk")
    assert [(c.name, c.ttft_ms, c.deadline_s) for c in policy.classes] == [
        ("chat", 500, None),
        ("bulk", None, 60),
    ]
    assert list(json.loads(data["keys.json"])["keys"]) == ["0123456789abcdef"]


@pytest.mark.parametrize(
    ("uri", "location"),
    [
        ("hf://org/name", ModelLocation("org/name")),
        ("pvc://claim", ModelLocation("/models/claim", "claim", "/models/claim")),
        ("pvc://claim/", ModelLocation("/models/claim", "claim", "/models/claim")),
        ("pvc://claim/a/b", ModelLocation("/models/claim/a/b", "claim", "/models/claim")),
    ],
)
def test_model_location(uri: str, location: ModelLocation) -> None:
    assert locate(InferenceServiceSpec.model_validate(spec(model={"uri": uri})).model) == location


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        ("1", 1),
        ("1Ki", 1024),
        ("1.5Gi", 1610612736),
        ("2G", 2_000_000_000),
        ("1e3", 1000),
        ("1500m", 1),
        ("1E", 10**18),
    ],
)
def test_quantity_in_bytes(quantity: str, expected: int) -> None:
    assert in_bytes(quantity) == expected


def test_no_quantity_is_an_error() -> None:
    with pytest.raises(ValueError, match="quantity"):
        in_bytes("much")


def test_half_is_at_least_something() -> None:
    assert half_in_mebibytes("1Ki") == "1Mi"


def test_pod_gets_no_api_token_and_no_service_variables() -> None:
    pod = template(spec())["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
