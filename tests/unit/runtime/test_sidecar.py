"""The sidecar's HTTP interface, its status and its metrics."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, UnixConnector, web
from prometheus_client.parser import text_string_to_metric_families

from headway_runtime.exchange.class_record import ClassRecord, Windows
from headway_runtime.exchange.histogram import BUCKETS
from headway_runtime.exchange.statistics_record import EngineState
from headway_runtime.exchange.step_record import Decision
from headway_runtime.exchange.suspects_file import SuspectsWriter, Told, file_name
from headway_runtime.policy import MAX_CLASSES, MAX_PAYLOAD_BYTES, TrafficClass
from headway_runtime.scheduling.quarantine.suspects import Suspect
from headway_runtime.sidecar import application
from headway_runtime.sidecar.application import create_application
from headway_runtime.sidecar.policies import Policies
from headway_runtime.sidecar.settings import Settings
from tests.unit.runtime.engines import BLANK, write_statistics
from tests.unit.runtime.policies import POD, SERVICE, policy, publish, signed

BASELINE = policy(1, 0, 0)


class Client:
    """Asks a sidecar through any of its sockets."""

    def __init__(self, settings: Settings, session: Any, unix_session: Any) -> None:
        self.settings = settings
        self._session = session
        self._unix_session = unix_session

    async def policy_port(self, method: Any, path: Path, **options: Any) -> Any:
        return await self._ask(self._session, method, self.settings.policy_port, path, options)

    async def metrics_port(self, method: Any, path: Path, **options: Any) -> Any:
        return await self._ask(self._session, method, self.settings.metrics_port, path, options)

    async def unix(self, method: Any, path: Path, **options: Any) -> Any:
        return await self._ask(self._unix_session, method, 80, path, options)

    async def push(self, sent: Any) -> Any:
        status, text = await self.policy_port("PUT", "/v1/policy", data=signed(sent).to_json())
        return status, json.loads(text)

    async def status(self) -> Any:
        return json.loads((await self.policy_port("GET", "/v1/status"))[1])

    async def metrics(self) -> Any:
        _, text = await self.metrics_port("GET", "/metrics")
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    async def _ask(self, session: Any, method: Any, port: Any, path: Path, options: Any) -> Any:
        async with session.request(method, f"http://127.0.0.1:{port}{path}", **options) as response:
            return response.status, await response.text()


@pytest.fixture
async def start(tmp_path: Path, unused_tcp_port_factory: Any) -> Any:
    closing = []

    async def start(baseline: Any = BASELINE) -> Any:
        (tmp_path / "run").mkdir(exist_ok=True)
        publish(tmp_path / "policy", baseline)
        settings = Settings(
            tmp_path / "run",
            tmp_path / "policy",
            SERVICE,
            POD,
            policy_port=unused_tcp_port_factory(),
            metrics_port=unused_tcp_port_factory(),
            address="127.0.0.1",
        )
        runner = web.AppRunner(create_application(settings))
        await runner.setup()
        for port in (settings.policy_port, settings.metrics_port):
            await web.TCPSite(runner, settings.address, port).start()
        await web.UnixSite(runner, str(settings.socket)).start()
        session = ClientSession()
        unix_session = ClientSession(connector=UnixConnector(str(settings.socket)))
        closing.extend([session.close, unix_session.close, runner.cleanup])
        return Client(settings, session, unix_session)

    yield start
    for close in closing:
        await close()


@pytest.fixture
async def client(start: Any) -> Any:
    return await start()


async def test_a_policy_is_applied_once_and_then_known(client: Client) -> None:
    sent = policy(1, 1, 1)
    assert await client.push(sent) == (200, {"outcome": "Applied", "stamp": "1.1.1"})
    assert await client.push(sent) == (200, {"outcome": "AlreadyApplied", "stamp": "1.1.1"})


async def test_an_old_policy_is_answered_with_the_stamp_in_force(client: Client) -> None:
    await client.push(policy(1, 1, 1))
    assert await client.push(policy(1, 0, 9)) == (409, {"outcome": "Outdated", "stamp": "1.1.1"})


async def test_a_policy_for_others_is_answered_with_nothing_of_this_pod(client: Client) -> None:
    assert await client.push(policy(2, 0, 0, pod="x")) == (403, {"outcome": "WrongScope"})


@pytest.mark.parametrize(
    ("change", "status", "outcome"),
    [
        ({"signature": bytes(64)}, 401, "BadSignature"),
        ({"key_id": "unknown"}, 401, "UnknownKey"),
    ],
)
async def test_a_policy_that_is_not_the_operators_is_unauthorized(
    client: Client, change: Any, status: int, outcome: Any
) -> None:
    body = replace(signed(policy(2, 0, 0)), **change).to_json()
    answer = await client.policy_port("PUT", "/v1/policy", data=body)
    assert (answer[0], json.loads(answer[1])) == (status, {"outcome": outcome})


async def test_a_body_that_is_no_policy_is_a_bad_request(client: Client) -> None:
    status, text = await client.policy_port("PUT", "/v1/policy", data=b"{}")
    assert (status, json.loads(text)["outcome"]) == (400, "BadFormat")


async def test_a_body_that_is_too_large_is_not_read(client: Client) -> None:
    body = b"x" * (2 * MAX_PAYLOAD_BYTES + 1000)
    assert (await client.policy_port("PUT", "/v1/policy", data=body))[0] == 413


@pytest.mark.parametrize(
    ("socket", "paths"),
    [
        ("policy_port", {"/v1/policy", "/v1/status", "/requests"}),
        ("metrics_port", {"/startedz", "/readyz", "/metrics"}),
        ("unix", {"/drain"}),
    ],
)
async def test_each_socket_serves_its_own_routes_only(
    client: Client, socket: Any, paths: Any
) -> None:
    ask = getattr(client, socket)
    methods = {"/v1/policy": "PUT", "/drain": "POST"}
    others = ("/startedz", "/readyz", "/metrics", "/drain", "/")
    for path in ("/v1/policy", "/v1/status", "/requests", *others):
        status, _ = await ask(methods.get(path, "GET"), path)
        assert (status == 404) == (path not in paths), path


@pytest.mark.parametrize("socket", ["metrics_port", "unix", "policy_port"])
async def test_only_the_policy_port_tells_of_single_requests(client: Client, socket: str) -> None:
    status, text = await getattr(client, socket)("GET", "/requests/chatcmpl-7")
    assert (status, "No request with this id" in text) == (404, socket == "policy_port")


async def test_it_has_started_and_is_ready_with_its_first_policy(start: Any) -> None:
    client = await start(baseline=None)
    for path in ("/startedz", "/readyz"):
        assert (await client.metrics_port("GET", path))[0] == 503
    await client.push(policy(1, 1, 1))
    for path in ("/startedz", "/readyz"):
        assert (await client.metrics_port("GET", path))[0] == 200


async def test_draining_makes_it_unready_and_not_unstarted(client: Client) -> None:
    assert (await client.unix("POST", "/drain", data="5"))[0] == 200
    assert (await client.metrics_port("GET", "/readyz"))[0] == 503
    assert (await client.metrics_port("GET", "/startedz"))[0] == 200
    assert (await client.status())["draining"]


async def test_only_a_known_container_is_drained(client: Client) -> None:
    assert (await client.unix("POST", "/drain"))[0] == 400
    assert (await client.metrics_port("GET", "/readyz"))[0] == 200


async def test_draining_outlives_the_server_and_ends_with_the_engine_container(
    client: Client, start: Any
) -> None:
    write_statistics(client.settings.run_dir, container_started_ticks=10)
    await client.unix("POST", "/drain", data="10")
    client.settings.socket.unlink()
    restarted = await start()
    assert (await restarted.metrics_port("GET", "/readyz"))[0] == 503
    write_statistics(client.settings.run_dir, container_started_ticks=11)
    assert (await restarted.metrics_port("GET", "/readyz"))[0] == 200


@pytest.mark.parametrize("before", [None, 9], ids=["first container", "restarted container"])
async def test_an_engine_that_is_told_to_stop_while_it_loads_gets_no_requests_once_it_has(
    client: Client, before: int | None
) -> None:
    if before is not None:
        write_statistics(client.settings.run_dir, container_started_ticks=before)
    await client.unix("POST", "/drain", data="10")
    assert (await client.metrics_port("GET", "/readyz"))[0] == 503
    # Its process that computes starts later than it was told.
    write_statistics(
        client.settings.run_dir, pid=12, process_started_ticks=99, container_started_ticks=10
    )
    assert (await client.metrics_port("GET", "/readyz"))[0] == 503


async def test_status_of_a_pod_whose_engine_has_not_started(client: Client) -> None:
    assert await client.status() == {
        "podUid": POD,
        "serviceUid": SERVICE,
        "policy": {
            "stamp": "1.0.0",
            "mode": "Act",
            "thetaPpm": None,
            "tokenBudget": None,
            "maxBatchSize": None,
            "classLimits": {},
        },
        "draining": False,
        "engines": [],
        "quarantined": [],
        "setAsideRequests": 0,
    }


async def test_status_tells_what_the_policy_asks_for(client: Client) -> None:
    classes = (TrafficClass("batch", max_running=3), TrafficClass("chat", ttft_ms=1))
    asked = {"theta_ppm": 200_000, "token_budget": 512, "max_batch_size": 8, "classes": classes}
    await client.push(policy(1, 1, 1, **asked))
    told = (await client.status())["policy"]
    assert (told["thetaPpm"], told["tokenBudget"], told["maxBatchSize"]) == (200_000, 512, 8)
    assert told["classLimits"] == {"batch": 3}


async def test_status_of_an_engine_before_its_first_step(client: Client) -> None:
    write_statistics(client.settings.run_dir, pid=3, waiting=2)
    [engine] = (await client.status())["engines"]
    assert engine["state"] == "Active"
    assert (engine["policyStamp"], engine["lastStepAgeSeconds"]) == (None, None)
    assert (engine["tokenBudget"], engine["maxBatchSize"], engine["waiting"]) == (2048, 64, 2)


async def test_status_of_an_engine_that_runs(client: Client) -> None:
    step = replace(BLANK, generation=1, epoch=2, counter=3, token_budget=512, max_batch=8)
    write_statistics(client.settings.run_dir, step, running=5)
    [engine] = (await client.status())["engines"]
    assert (engine["policyStamp"], engine["steps"], engine["running"]) == ("1.2.3", 1, 5)
    assert (engine["tokenBudget"], engine["maxBatchSize"]) == (512, 8)
    assert engine["lastStepAgeSeconds"] > 0


async def test_status_of_an_engine_that_cannot_be_planned_for(client: Client) -> None:
    stock = {"state": int(EngineState.STOCK), "stock_reason": "HybridModel"}
    write_statistics(client.settings.run_dir, **stock)
    [engine] = (await client.status())["engines"]
    assert (engine["state"], engine["stockReason"]) == ("Stock", "HybridModel")


async def test_a_statistics_file_of_another_release_is_left_out(client: Client) -> None:
    (client.settings.run_dir / "engine-0.statistics").write_bytes(b"HEADWAYS of the future")
    assert (await client.status())["engines"] == []
    assert (await client.metrics())["headway_steps_total",] == 0


def recent(**values: Any) -> Any:
    return replace(BLANK, wall_time_ns=time.time_ns(), **values)


async def test_metrics_are_the_latest_totals_in_base_units(client: Client) -> None:
    write_statistics(
        client.settings.run_dir,
        recent(scheduled_tokens_total=10),
        recent(
            scheduled_tokens_total=30,
            plugin_ns_total=2_000_000,
            step_ns_total=10**9,
            token_budget=512,
            max_batch=8,
            kv_usage_ppm=250_000,
            late_total=4,
        ),
        running=3,
        waiting=2,
    )
    metrics = await client.metrics()
    assert metrics["headway_steps_total",] == 2
    assert metrics["headway_scheduled_tokens_total",] == 30
    assert metrics["headway_plugin_seconds_total",] == pytest.approx(0.002)
    assert metrics["headway_step_seconds_total",] == pytest.approx(1)
    assert metrics["headway_token_budget_tokens",] == 512
    assert metrics["headway_token_budget_ceiling_tokens",] == 2048
    assert metrics["headway_max_batch_requests",] == 8
    assert metrics["headway_kv_cache_usage_ratio",] == 0.25
    assert metrics["headway_fallbacks_total", "Late"] == 4
    assert (metrics["headway_running_requests",], metrics["headway_waiting_requests",]) == (3, 2)


async def test_quantiles_are_over_recent_steps(client: Client) -> None:
    old = replace(BLANK, wall_time_ns=1, plan_ns=10**9)
    steps = [recent(plan_ns=number * 1000) for number in range(101)]
    write_statistics(client.settings.run_dir, old, *steps)
    metrics = await client.metrics()
    assert metrics["headway_recent_plan_seconds", "0.5"] == pytest.approx(50e-6)
    assert metrics["headway_recent_plan_seconds", "0.99"] == pytest.approx(99e-6)


async def test_an_open_breaker_shows_until_its_time_is_over(client: Client) -> None:
    paused = recent(decision=int(Decision.BREAKER), breaker_open=1)
    write_statistics(client.settings.run_dir, paused)
    assert (await client.metrics())["headway_breaker_open",] == 1
    write_statistics(client.settings.run_dir, replace(paused, wall_time_ns=1))
    assert (await client.metrics())["headway_breaker_open",] == 0


async def test_metrics_tell_policies_by_outcome_and_the_stamp_in_force(client: Client) -> None:
    for each in (policy(1, 2, 3), policy(1, 2, 3), policy(1, 0, 1)):
        await client.push(each)
    metrics = await client.metrics()
    assert metrics["headway_policies_total", "Accepted"] == 2
    assert metrics["headway_policies_total", "Refused"] == 1
    stamp = [metrics[f"headway_policy_{part}",] for part in ("generation", "epoch", "counter")]
    assert stamp == [1, 2, 3]


async def test_a_pod_has_at_most_40_series_and_4_for_each_class(client: Client) -> None:
    classes = tuple(TrafficClass(f"c{n}", ttft_ms=1, tpot_ms=1) for n in range(MAX_CLASSES))
    asked = {"theta_ppm": 1, "token_budget": 512, "max_batch_size": 8, "classes": classes}
    await client.push(policy(1, 1, 1, **asked))
    ratios = Windows(current=[1] * BUCKETS)
    for rank in range(4):
        write_statistics(
            client.settings.run_dir,
            recent(plan_ns=1, step_ns=1),
            rank=rank,
            sampled_ns=1,
            offered=(1, 1),
            classes=[
                ClassRecord(each.name, 1, 1, 1, time.time_ns(), ttft=ratios, tpot=ratios)
                for each in classes
            ],
        )
    series = await client.metrics()
    of_classes = [each for each in series if each[0].startswith("headway_class_")]
    assert (len(series) - len(of_classes), len(of_classes)) == (40, 4 * MAX_CLASSES)


async def test_a_change_of_the_config_map_is_taken_in(client: Client) -> None:
    publish(client.settings.policy_dir, policy(2, 0, 0))
    async with asyncio.timeout(60):
        while (await client.status())["policy"]["stamp"] != "2.0.0":  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_a_fault_while_following_the_config_map_does_not_end_that(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application, "CONFIG_MAP_PERIOD_S", 0.01)
    client = await start()
    failed = asyncio.Event()

    def fail(_: object) -> None:
        failed.set()
        raise ZeroDivisionError

    with monkeypatch.context() as broken:
        broken.setattr(Policies, "follow_config_map", fail)
        async with asyncio.timeout(60):
            await failed.wait()
    publish(client.settings.policy_dir, policy(2, 0, 0))
    async with asyncio.timeout(60):
        while (await client.status())["policy"]["stamp"] != "2.0.0":  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_client_that_has_hung_up_has_no_route(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What aiohttp says of a connection that is gone; here the answer still gets through.
    monkeypatch.setattr(web.Request, "get_extra_info", lambda *_: None)
    assert (await client.metrics_port("GET", "/readyz"))[0] == 404


def test_settings_come_from_the_environment() -> None:
    environment = {
        "HEADWAY_RUN_DIR": "/run/headway",
        "HEADWAY_POLICY_DIR": "/etc/headway/policy",
        "HEADWAY_SERVICE_UID": "s",
        "HEADWAY_POD_UID": "p",
    }
    settings = Settings.from_environment(environment)
    assert (settings.policy_port, settings.metrics_port) == (8900, 8901)
    assert str(settings.socket) == "/run/headway/sidecar.sock"
    changed = Settings.from_environment({**environment, "HEADWAY_POLICY_PORT": "1"})
    assert changed.policy_port == 1
    with pytest.raises(KeyError):
        Settings.from_environment({})


async def test_who_is_tried_and_refused_is_told_on_the_port_of_policies(client: Client) -> None:
    status, text = await client.policy_port("GET", "/quarantine")
    assert (status, json.loads(text)) == (200, {"engineCrashes": 0, "requests": []})
    write_suspect(client.settings.run_dir)
    assert (await client.status())["quarantined"] == [{"fingerprint": "61" * 12, "crashes": 2}]
    assert (await client.metrics_port("GET", "/quarantine"))[0] == 404


def write_suspect(run_dir: Path) -> None:
    writer = SuspectsWriter(run_dir / file_name(0))
    writer.write(Told(2, {b"a" * 12: Suspect("acme", 2, 2, time.time())}))
    writer.close()


async def test_status_counts_what_the_plug_in_set_aside(client: Client) -> None:
    write_statistics(client.settings.run_dir, set_aside_requests=3)
    assert (await client.status())["setAsideRequests"] == 3
