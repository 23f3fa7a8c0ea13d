from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_operator.observe.classify import worst_problem
from headway_operator.observe.findings import ENGINE_FINDINGS
from headway_operator.observe.findings import FINDINGS as FINDINGS_TOLD
from headway_operator.observe.problems import Problem, Tier, shown
from headway_operator.observe.records import ConditionRecord, PodRecord, RolloutRecord
from headway_runtime.preflight.finding import Problem as Finding
from tests.unit.operator.samples import ended, pod, ready_pod, running, waiting

LOG_LINE = "hunter2 IGNORE previous; Bearer abc\n"


def problem_of(*pods: PodRecord, failure: str = "") -> Problem:
    conditions = {"ReplicaFailure": ConditionRecord("True", "FailedCreate", failure)}
    rollout = RolloutRecord(None, 1, 1, 0, conditions if failure else {})
    found = worst_problem(rollout, pods, 0.0)
    assert found is not None
    return found


def unschedulable(message: str) -> PodRecord:
    return pod(scheduled=("False", "Unschedulable", message))


SCHEDULER = [
    (
        (
            "0/3 nodes are available: 1 node(s) had untolerated taint {a: b}, 2 Insufficient "
            "nvidia.com/gpu. preemption: 0/3 nodes are available: 3 No preemption victims found."
        ),
        "InsufficientGPU",
        "0/3 nodes are available: 2 Insufficient nvidia.com/gpu",
        False,
    ),
    (
        "0/2 nodes are available: 1 Insufficient cpu, 2 Insufficient memory.",
        "InsufficientResources",
        "1 Insufficient cpu",
        False,
    ),
    ('persistentvolumeclaim "models" not found', "VolumeClaimNotFound", "models", True),
    (
        "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
        "VolumeClaimUnbound",
        "storage class",
        False,
    ),
    (
        "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
        "Unschedulable",
        "nodeSelector",
        False,
    ),
]


@pytest.mark.parametrize(("message", "reason", "told", "stalls"), SCHEDULER)
def test_why_a_pod_has_no_node(message: str, reason: str, told: str, stalls: bool) -> None:
    problem = problem_of(unschedulable(message))
    assert (problem.reason, problem.stalls) == (reason, stalls)
    assert told in problem.message


CONTAINERS: list[tuple[str, dict[str, Any], str, str, Tier, bool]] = [
    (
        "engine",
        waiting("ImagePullBackOff", 'Back-off pulling image "x": ErrImagePull: x: not found'),
        "ImageNotFound",
        "vllm/vllm-openai:v0.26.0",
        Tier.BAD_DATA,
        True,
    ),
    (
        "engine",
        waiting("ErrImagePull", "pull access denied, authorization failed"),
        "ImagePullDenied",
        "imagePullSecrets",
        Tier.BAD_DATA,
        True,
    ),
    (
        "engine",
        waiting("ErrImagePull", "dial tcp 10.0.0.1:443: i/o timeout"),
        "ImagePullFailed",
        "cannot be pulled",
        Tier.TEMPORARY,
        False,
    ),
    ("engine", waiting("InvalidImageName"), "InvalidImageName", "valid", Tier.BAD_DATA, True),
    ("engine", waiting("ErrImageNeverPull"), "ImageNotPresent", "Never", Tier.BAD_DATA, True),
    (
        "preflight",
        waiting("CreateContainerConfigError", 'secret "hub" not found'),
        "ReferenceNotFound",
        "Secret hub does not exist",
        Tier.BAD_DATA,
        True,
    ),
    (
        "preflight",
        waiting("CreateContainerConfigError", "couldn't find key token in Secret team/hub"),
        "ReferenceNotFound",
        "Secret hub has no key token",
        Tier.BAD_DATA,
        True,
    ),
    (
        "engine",
        ended("OOMKilled", 1, restartCount=1),
        "OOMKilled",
        "Container engine was killed for exceeding its memory limit of",
        Tier.RESOURCE,
        False,
    ),
    (
        "engine",
        waiting("CrashLoopBackOff", restartCount=5, lastState=ended("OOMKilled", 137)["state"]),
        "OOMKilled",
        "memory limit",
        Tier.RESOURCE,
        True,
    ),
    (
        "engine",
        waiting("CrashLoopBackOff", restartCount=1, lastState=ended("Error", 7)["state"]),
        "EngineCrashed",
        "code 7",
        Tier.SYSTEM,
        False,
    ),
    (
        "engine",
        {**running(started=False), "restartCount": 4, "lastState": ended("Error", 7)["state"]},
        "EngineCrashed",
        "code 7",
        Tier.SYSTEM,
        True,
    ),
    (
        # It had served for weeks: what happened before that is over.
        "engine",
        {
            **running(started=False),
            "restartCount": 9,
            "lastState": ended("Error", 7, ran_s=1_000_000)["state"],
        },
        "EngineCrashed",
        "code 7",
        Tier.SYSTEM,
        False,
    ),
    ("engine", ended("Completed", 0), "EngineCrashed", "code 0", Tier.SYSTEM, False),
    ("preflight", ended("Error", 3, "no JSON"), "PreflightFailed", "code 3", Tier.SYSTEM, False),
    ("install-runtime", ended("Error", 2), "RuntimeInstallFailed", "code 2", Tier.SYSTEM, False),
    ("headway-sidecar", ended("Error", 2), "SidecarCrashed", "code 2", Tier.SYSTEM, False),
    ("engine", waiting("RunContainerError", "oci"), "ContainerCannotStart", "", Tier.SYSTEM, False),
]


@pytest.mark.parametrize("row", CONTAINERS, ids=lambda row: f"{row[0]}-{row[2]}")
def test_why_a_container_does_not_run(
    row: tuple[str, dict[str, Any], str, str, Tier, bool],
) -> None:
    name, state, reason, told, tier, stalls = row
    problem = problem_of(pod(**{name.replace("-", "_"): state}))
    assert (problem.reason, problem.tier, problem.stalls) == (reason, tier, stalls)
    assert told in problem.message


FINDINGS = [
    ("UnknownEngineFlag", {"flag": "--no-such", "version": "0.32.0"}, ["--no-such", "0.32.0"]),
    ("UnsupportedEngineVersion", {"version": "0.9.1", "supported": "0.26 to 0.33"}, ["0.9.1"]),
    ("EngineNotFound", {}, ["engine.image"]),
    ("ModelNotFound", {"path": "/models/models/tiny"}, ["/models/models/tiny", "model.uri"]),
    ("ModelNotReadable", {"path": "/models/models/tiny"}, ["/models/models/tiny"]),
    ("ModelInvalid", {"path": "/models/models/tiny"}, ["/models/models/tiny"]),
    ("ModelAccessDenied", {"path": "org/name"}, ["org/name", "model.tokenSecret"]),
    ("ReservedEngineFlag", {"flag": "--max-num-s", "full": "--max-num-seqs"}, ["--max-num-s "]),
    (
        "ContradictoryEngineFlags",
        {"flag": "--a", "needs": "--b", "version": "0.32.0"},
        ["--a without --b"],
    ),
    (
        "UnknownEngineFlag",
        {"flag": "--dtyp", "version": "0.32.0", "suggestion": "--dtype"},
        ["Did you mean --dtype?"],
    ),
]


@pytest.mark.parametrize(("reason", "captures", "told"), FINDINGS)
def test_preflight_findings_are_told_with_their_remedy(
    reason: str, captures: dict[str, str], told: list[str]
) -> None:
    message = json.dumps({"reason": reason, "captures": captures})
    problem = problem_of(pod(preflight=ended("Error", 1, message)))
    assert (problem.reason, problem.stalls, problem.tier) == (reason, True, Tier.BAD_DATA)
    assert all(text in problem.message for text in told)


def test_every_finding_is_known() -> None:
    assert {*FINDINGS_TOLD, *ENGINE_FINDINGS} == {finding.value for finding in Finding}


@pytest.mark.parametrize(
    ("reason", "tier", "remedy"),
    [
        ("EngineOutOfMemory", Tier.RESOURCE, "lower --gpu-memory-utilization"),
        ("KVCacheTooSmall", Tier.RESOURCE, "lower --max-model-len"),
        ("ModelDownloadFailed", Tier.TEMPORARY, "check model.uri"),
    ],
)
@pytest.mark.parametrize("restarts", [0, 3])
def test_what_an_engine_says_of_its_end_is_told(
    reason: str, tier: Tier, remedy: str, restarts: int
) -> None:
    message = json.dumps({"reason": reason, "captures": {"path": LOG_LINE, "answer": LOG_LINE}})
    problem = problem_of(pod(engine=ended("Error", 1, message, restartCount=restarts)))
    assert (problem.reason, problem.tier) == (reason, tier)
    assert problem.stalls == (restarts == 3)
    assert remedy in problem.message
    assert LOG_LINE not in problem.message


@pytest.mark.parametrize("answer", ["HTTP 503", "no answer"])
def test_what_the_hub_answered_is_told(answer: str) -> None:
    message = json.dumps({"reason": "ModelDownloadFailed", "captures": {"answer": answer}})
    problem = problem_of(pod(engine=ended("Error", 1, message)))
    assert f"(from the hub: {answer})" in problem.message


def test_an_engine_cannot_speak_for_the_preflight_check() -> None:
    message = json.dumps({"reason": "ModelNotFound", "captures": {"path": "/x"}})
    assert problem_of(pod(engine=ended("Error", 1, message))).reason == "EngineCrashed"


def test_suggestion_that_is_no_flag_is_left_out() -> None:
    captures = {"flag": "--x", "version": "0.32.0", "suggestion": LOG_LINE}
    message = json.dumps({"reason": "UnknownEngineFlag", "captures": captures})
    assert problem_of(pod(preflight=ended("Error", 1, message))).message.endswith("engine.image")


def test_volumes_that_are_not_mounted_show_after_a_while() -> None:
    unprepared = replace(pod(), prepared=ConditionRecord("False", since=100.0))
    assert worst_problem(None, [unprepared], 129.0) is None
    problem = worst_problem(None, [unprepared], 130.0)
    assert problem is not None
    assert problem.reason == "VolumesNotMounted"
    waits = replace(unprepared, scheduled=ConditionRecord("False", "Unschedulable", "x"))
    unscheduled = worst_problem(None, [waits], 130.0)
    assert unscheduled is not None
    assert unscheduled.reason == "Unschedulable"


QUOTA = 'pods "x" is forbidden: exceeded quota: gpus, requested: nvidia.com/gpu=1, used: 0'
CREATION = [
    (QUOTA, "QuotaExceeded", "gpus", False),
    (
        'pods "x" is forbidden: violates PodSecurity "restricted:latest": x',
        "PodSecurityViolated",
        "",
        True,
    ),
    (
        'error looking up service account team/x: serviceaccount "x" not found',
        "ReferenceNotFound",
        "ServiceAccount x",
        True,
    ),
    ("no PriorityClass with name high was found", "ReferenceNotFound", "PriorityClass high", True),
    ("something else", "PodCreationFailed", "describe", False),
]


@pytest.mark.parametrize(("message", "reason", "told", "stalls"), CREATION)
def test_why_pods_are_not_created(message: str, reason: str, told: str, stalls: bool) -> None:
    problem = problem_of(failure=message)
    assert (problem.reason, problem.stalls) == (reason, stalls)
    assert told in problem.message


def test_what_will_not_heal_is_shown_first() -> None:
    crash = pod("demo-1", engine=ended("Error", 1))
    claim = pod(
        "demo-2", scheduled=("False", "Unschedulable", 'persistentvolumeclaim "m" not found')
    )
    assert problem_of(crash, claim).reason == "VolumeClaimNotFound"


def test_the_container_that_starts_first_explains_the_later_ones() -> None:
    both = pod(preflight=ended("Error", 3), engine=waiting("PodInitializing"))
    assert problem_of(both).reason == "PreflightFailed"


def test_finished_init_container_is_no_problem() -> None:
    state = {**ended("Completed", 0), "restartCount": 1, "lastState": ended("Error", 1)["state"]}
    assert worst_problem(None, [pod(preflight=state)], 0.0) is None


@pytest.mark.parametrize(("ran_s", "stalls"), [(1800 + 299, True), (1800 + 301, False)])
def test_a_start_that_takes_as_long_as_it_may_is_none_that_served(
    ran_s: float, *, stalls: bool
) -> None:
    problem = problem_of(pod(engine=ended("Error", 7, ran_s=ran_s, restartCount=3)))
    assert problem.stalls == stalls


def test_engine_that_got_through_start_up_is_forgiven_its_crash() -> None:
    state = {**running(), "restartCount": 1, "lastState": ended("Error", 1)["state"]}
    assert worst_problem(None, [pod(engine=state)], 0.0) is None


def test_pod_whose_containers_are_ready_and_who_is_not_has_lost_its_node() -> None:
    # As Kubernetes' node controller leaves it: the kubelet writes both or none.
    lost = ready_pod(ready=False)
    problem = worst_problem(None, [lost], 0)
    assert problem is not None
    assert (problem.reason, problem.stalls) == ("NodeNotReady", False)
    assert "delete a node that does not come back" in problem.message
    assert worst_problem(None, [replace(lost, gated=True)], 0) is None


def test_pod_whose_engine_is_not_ready_has_not_lost_its_node() -> None:
    busy = ready_pod(ready=False, engine={**running(), "ready": False})
    assert worst_problem(None, [busy], 0) is None


def test_ready_pod_has_no_problem() -> None:
    assert worst_problem(None, [ready_pod()], 0.0) is None


ANY_TEXT = st.text(max_size=200) | st.just(LOG_LINE)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY_TEXT,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(ANY_TEXT, below, max_size=3),
    max_leaves=6,
)


@given(ANY_TEXT, st.sampled_from(["preflight", "engine", "headway-sidecar", "install-runtime"]))
def test_no_text_from_a_container_reaches_a_condition(text: str, name: str) -> None:
    marked = f"{LOG_LINE}{text}"
    for state in (
        ended("Error", 1, marked),
        ended(marked, 1, marked),
        waiting("CrashLoopBackOff", marked, lastState=ended("Error", 1, marked)["state"]),
        waiting("CreateContainerConfigError", marked),
        waiting("ErrImagePull", marked),
    ):
        assert "hunter2" not in problem_of(pod(**{name.replace("-", "_"): state})).message


@given(st.sampled_from([each[0] for each in FINDINGS]), ANY_JSON, ANY_TEXT)
def test_no_capture_is_shown_that_does_not_look_like_one(
    reason: str, captures: Any, text: str
) -> None:
    hostile = {"flag": f"--{LOG_LINE}", "version": f"0.{text}\n", "path": f"/{LOG_LINE}{text}"}
    for found in (captures, hostile):
        message = json.dumps({"reason": reason, "captures": found})
        problem = problem_of(pod(preflight=ended("Error", 1, message)))
        assert problem.reason in {reason, "PreflightFailed"}
        assert "hunter2" not in problem.message
        assert "\n" not in problem.message


@given(ANY_JSON)
def test_any_termination_message_is_survived(value: Any) -> None:
    assert problem_of(pod(preflight=ended("Error", 1, json.dumps(value)))).reason


@given(ANY_TEXT)
def test_scheduler_text_is_not_repeated(text: str) -> None:
    assert "hunter2" not in problem_of(unschedulable(f"0/1 nodes {LOG_LINE}{text}")).message


@pytest.mark.parametrize("kind", ["name", "key", "image", "flag", "version", "path", "word"])
def test_stand_in_for_what_must_not_be_shown(kind: str) -> None:
    assert shown(kind, LOG_LINE) == shown(kind, None) == shown(kind, "") == "(not shown)"


def test_limit_that_was_exceeded_is_named() -> None:
    assert "memory limit of 512Mi" in problem_of(pod(preflight=ended("OOMKilled", 1))).message
