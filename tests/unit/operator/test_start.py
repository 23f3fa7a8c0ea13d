from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from kubernetes.aio.client import ApiException
from prometheus_client import REGISTRY

from headway_operator.act.lease import Leadership
from headway_operator.act.signing import CURRENT, KeyRing
from headway_operator.decide import decide
from headway_operator.decide.scaling import NO_ACTIVATOR, UNATTENDED_SECONDS, decide_scaling
from headway_operator.environment import Environment, EnvironmentVariableError
from headway_operator.memory.claims import GpuClaim, GpuQuota
from headway_operator.memory.idleness import Idleness
from headway_operator.memory.tuning import OperatingPoint
from headway_operator.observe.clock_watch import ClockWatch
from headway_operator.observe.instant import Instant
from headway_operator.observe.records import PodRecord, ServiceKey
from headway_operator.operator import SILENT_LOOKS, Operator
from headway_operator.watching import watch_settings
from tests.unit.operator.fakes import FakeCluster, api_error
from tests.unit.operator.samples import NOW, pod, ready_pod, service, snapshot, spec

VARIABLES = {
    "HEADWAY_NAMESPACE": "headway-system",
    "HEADWAY_RUNTIME_IMAGE": "registry/runtime:1",
    "HEADWAY_ROUTER_IMAGE": "registry/router:1",
    "HEADWAY_SIGNING_KEY_DIR": "/keys",
}
ROOT = Path(__file__).parents[3]


def run(*arguments: str, module: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
    path = f"{ROOT / 'operator'}:{ROOT / 'runtime'}"
    return subprocess.run(
        [sys.executable, *(["-m"] if module else []), *arguments],
        env={"PYTHONPATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def write_key(folder: Path) -> None:
    key = Ed25519PrivateKey.generate()
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / CURRENT).write_bytes(text)


def test_environment_is_read() -> None:
    read = Environment.read({**VARIABLES, "HEADWAY_WATCH_NAMESPACES": " b, a,,"})
    assert read.watch_namespaces == ("a", "b")
    assert (read.namespace, read.log_format) == ("headway-system", "text")


@pytest.mark.parametrize("name", sorted(VARIABLES))
def test_missing_variable_is_named_with_the_remedy(name: str) -> None:
    with pytest.raises(EnvironmentVariableError, match=f"{name} is not set: set it to"):
        Environment.read({**VARIABLES, name: " "})


def test_wrong_log_format_is_named_with_the_remedy() -> None:
    with pytest.raises(EnvironmentVariableError, match=r"HEADWAY_LOG_FORMAT.*text or json"):
        Environment.read({**VARIABLES, "HEADWAY_LOG_FORMAT": "xml"})


@pytest.mark.parametrize(("text", "gpus"), [("", None), (" 8 ", 8), ("0", 0)])
def test_gpu_quota_is_a_number_or_none(text: str, gpus: int | None) -> None:
    assert Environment.read({**VARIABLES, "HEADWAY_GPU_QUOTA": text}).gpu_quota == gpus


@pytest.mark.parametrize("text", ["eight", "-1", "1.5"])
def test_wrong_gpu_quota_is_named_with_the_remedy(text: str) -> None:
    with pytest.raises(EnvironmentVariableError, match=r"HEADWAY_GPU_QUOTA must be a number"):
        Environment.read({**VARIABLES, "HEADWAY_GPU_QUOTA": text})


async def test_how_far_shared_gpus_go_is_shown_by_who_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_key(tmp_path)
    environment = Environment.read({**VARIABLES, "HEADWAY_GPU_QUOTA": "4"})
    operator = Operator(environment, FakeCluster(), KeyRing(tmp_path))  # type: ignore[arg-type]
    key = ServiceKey("team", "demo")
    operator.memory.claims.put(key, GpuClaim(key, 2, 1, 3, 2), 4, 7)

    def shown(epoch: int | None) -> list[float | None]:
        monkeypatch.setattr(Leadership, "epoch", epoch)
        operator.show_gpus()
        name, read = "headway_operator_gpus", REGISTRY.get_sample_value
        return [read(name, {"what": each}) for each in ("quota", "running", "wanted")]

    assert shown(None) == [None] * 3
    assert shown(7) == [4, 4, 6]
    assert shown(None) == [None] * 3


async def test_services_are_looked_at_when_others_may_get_more_or_fewer(tmp_path: Path) -> None:
    write_key(tmp_path)
    environment = Environment.read({**VARIABLES, "HEADWAY_GPU_QUOTA": "4"})
    operator = Operator(environment, FakeCluster(), KeyRing(tmp_path))  # type: ignore[arg-type]
    limits = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    scaling = {"mode": "Operator", "minReplicas": 3, "maxReplicas": 3}
    made = snapshot(service(spec(engine=limits, scaling=scaling)))
    shared = replace(made, quota=GpuQuota(4), operator=replace(made.operator, gpu_quota=4))
    plan = decide(shared, NOW)
    assert plan.claim is not None
    assert not operator.claim(made, plan)
    assert not operator.claim(shared, plan)
    more = replace(plan, claim=replace(plan.claim, wanted=5))
    assert operator.claim(shared, more)
    assert not operator.claim(shared, more)
    unreadable = replace(shared, spec=None)
    assert not operator.claim(unreadable, replace(plan, claim=None))
    (kept,) = operator.memory.claims.quota(4, ServiceKey("team", "other"), 2, 7).others
    assert kept.wanted == 5


def test_wrong_environment_ends_with_one_line() -> None:
    ended = run("headway_operator.main")
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert "HEADWAY_NAMESPACE" in ended.stderr


def test_help_lists_variables_and_ports() -> None:
    told = run("headway_operator.main", "--help").stdout
    assert "HEADWAY_SIGNING_KEY_DIR" in told
    assert "/healthz" in told


def test_probes_and_events_are_not_logged() -> None:
    script = """
import logging
from headway_operator.main import configure_logging
configure_logging("json")
for chatty in ("kopf.objects", "kopf.activities.probe", "aiohttp.access"):
    logging.getLogger(chatty).info("noise")
logging.getLogger("aiohttp.server").error("noise", exc_info=ValueError("traceback"))
logging.getLogger("kopf.activities.probe").error("the probe failed")
logging.getLogger("headway_operator.main").info("of interest")
"""
    told = run("-c", script, module=False).stderr
    assert "noise" not in told
    assert [json.loads(line)["message"] for line in told.splitlines()] == [
        "the probe failed",
        "of interest",
    ]


@pytest.fixture
async def operator(tmp_path: Path) -> Operator:
    write_key(tmp_path)
    environment = Environment.read(VARIABLES)
    return Operator(environment, FakeCluster(), KeyRing(tmp_path))  # type: ignore[arg-type]


async def test_an_operator_that_does_not_lead_or_stops_asks_no_activator(
    operator: Operator,
) -> None:
    before = asyncio.all_tasks()
    activator = replace(pod("demo-activator-1", ready=True), ip="192.0.2.1")
    operator.cluster.activators.put(ServiceKey("team", "demo"), activator)
    operator.watch_activators()
    assert asyncio.all_tasks() == before
    operator.leadership._valid_until = math.inf
    operator.watch_activators()
    (asking,) = asyncio.all_tasks() - before
    # kopf waits for tasks that were started while it ran.
    operator.stop()
    await asyncio.gather(asking, return_exceptions=True)
    assert asking.cancelled()
    await operator.activator_watch.close()


async def test_a_clock_that_is_set_is_told_once_and_times_begin_anew(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    at, forgotten = [1000.0], list[bool]()
    operator.clock_watch = ClockWatch(lambda: at[0], lambda: 0.0)
    monkeypatch.setattr(operator.collector, "forget", lambda: forgotten.append(True))
    known = operator.memory.of(service())
    known.idleness = Idleness(7, since=900.0)
    operator.watch_clock()
    assert known.idleness is not None
    at[0] -= 3600.0
    operator.now()  # also between two ticks
    operator.watch_clock()
    assert known.idleness is None
    assert forgotten == [True]
    assert [each.getMessage()[:28] for each in caplog.records] == ["The clock was set by -3600 s"]


async def test_who_leads_again_asks_pods_again_what_they_run_with(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    tells = {"policy": {"stamp": "1.7.3", "maxBatchSize": 8, "tokenBudget": 128}}

    async def status(pod: PodRecord) -> dict[str, object]:
        asked.append(pod.uid)
        return tells

    monkeypatch.setattr(operator.sidecars, "status", status)
    known, led = ready_pod(), snapshot(service(), ready_pod())
    operator.cluster.pods.put(ServiceKey("team", "demo"), known)
    operator.cluster.services.put(ServiceKey("team", "demo"), service())

    def point() -> OperatingPoint | None:
        reports = {known.uid: operator.memory.sidecars.report(known.uid)}
        epoch = operator.leadership.epoch or 0
        facts = replace(led.operator, epoch=epoch)
        tuning = decide(replace(led, operator=facts, reports=reports, tuning=None), NOW).tuning
        return tuning and tuning.point

    monkeypatch.setattr(Leadership, "epoch", 7)
    operator.begin_term()
    assert point() is None
    await operator.poller.poll_due(operator.cluster, 0.0)
    assert point() == OperatingPoint(token_budget=128, max_batch_size=8)
    operator.begin_term()  # the Lease was renewed late: the term is the same
    assert point() is not None
    monkeypatch.setattr(Leadership, "epoch", 9)
    operator.begin_term()
    assert point() is None
    tells["policy"] = {"stamp": "1.8.1", "maxBatchSize": 32}
    await operator.poller.poll_due(operator.cluster, 1.0)
    assert point() == OperatingPoint(max_batch_size=32)
    assert asked == [known.uid] * 2


async def test_a_term_begins_with_the_lease(operator: Operator) -> None:
    operator.memory.sidecars.polled("a", {"policy": {"stamp": "1.7.3"}})
    await operator.leadership.acquire_or_renew()
    assert operator.term == operator.leadership.epoch
    assert not operator.memory.sidecars.report("a").asked


async def test_what_lasted_before_the_api_server_was_away_wakes_nobody_after_it(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = service(spec(scaling={"mode": "External", "minReplicas": 0}, replicas=0))
    before = int(time.time() - UNATTENDED_SECONDS)
    monkeypatch.setattr(Leadership, "epoch", 7)
    operator.begin_term()
    known = operator.memory.of(declared)
    known.idleness = Idleness(7, since=before, unattended_since=before)
    asleep = snapshot(declared, children={})

    def reason() -> str:
        looked = replace(asleep, idleness=known.idleness)
        assert looked.spec is not None
        return decide_scaling(looked, looked.spec, Instant.at(time.time())).reason

    assert reason() == NO_ACTIVATOR
    operator.begin_term()  # the Lease is renewed, after a while and in the same term
    assert reason() == ""


async def look(operator: Operator, times: int) -> None:
    """Let the operator look at its Lease, whether or not that works."""
    for _ in range(times):
        with suppress(ApiException):
            await operator.leadership.acquire_or_renew()


async def test_an_operator_whose_api_server_is_away_lives_on(operator: Operator) -> None:
    cluster: FakeCluster = operator.leadership._cluster  # type: ignore[assignment]
    await look(operator, SILENT_LOOKS)
    operator.check()
    cluster.fails = [api_error(503)] * 1000
    await look(operator, 1000)
    operator.check()
    # It is back, and so are the watches.
    await look(operator, 1)
    with pytest.raises(RuntimeError, match="no event of Lease"):
        operator.check()
    operator.alive()
    await look(operator, SILENT_LOOKS)
    operator.check()


async def test_a_standby_with_a_dead_watch_is_not_alive(operator: Operator) -> None:
    cluster: FakeCluster = operator.leadership._cluster  # type: ignore[assignment]
    other = Leadership(cluster, "headway-system", "other", lambda: None)  # type: ignore[arg-type]
    await other.acquire_or_renew()
    await look(operator, SILENT_LOOKS)
    assert operator.leadership.epoch is None
    operator.check()
    await look(operator, 1)
    with pytest.raises(RuntimeError, match="no event of Lease"):
        operator.check()


async def test_operator_with_a_dead_watch_is_not_alive(operator: Operator) -> None:
    operator.check()
    operator.relist.overlooked = 2
    with pytest.raises(RuntimeError, match="do not show 2 objects"):
        operator.check()
    operator.relist.overlooked = 0
    await look(operator, SILENT_LOOKS + 1)
    with pytest.raises(RuntimeError, match="no event of Lease"):
        operator.check()


def test_kopf_leaves_no_traces_in_the_cluster() -> None:
    settings = watch_settings("lease")
    assert not settings.posting.enabled
    assert settings.peering.standalone
    assert settings.scanning.disabled
    assert settings.watching.server_timeout is not None
    assert settings.watching.client_timeout is not None


def test_dry_run_prints_what_would_be_applied(tmp_path: Path) -> None:
    service = {
        "apiVersion": "headway.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": "demo"},
        "spec": spec(),
    }
    file = tmp_path / "service.yaml"
    file.write_text(yaml.safe_dump(service))
    printed = run("headway_operator.render", str(file), "--runtime-image", "r:1")
    kinds = [each["kind"] for each in yaml.safe_load_all(printed.stdout)]
    assert kinds[-1] == "Deployment"
    assert len(kinds) == 5


def test_dry_run_names_the_wrong_field(tmp_path: Path) -> None:
    service = {
        "apiVersion": "headway.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": "demo"},
        "spec": {**spec(), "replica": 2},
    }
    file = tmp_path / "service.yaml"
    file.write_text(yaml.safe_dump(service))
    ended = run("headway_operator.render", str(file))
    assert ended.returncode == 1
    assert "replica" in ended.stderr
    file.write_text("{}")
    assert "holds no InferenceService" in run("headway_operator.render", str(file)).stderr
