"""Metrics of the engines: from Prometheus, from the pods themselves, or from nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from headway_operator.observe.cluster import Cluster
from headway_operator.observe.engine_metrics.collector import (
    IDLE_PODS_A_TICK,
    NOT_CONFIGURED,
    STALE_SECONDS,
    TRIES,
    Collector,
)
from headway_operator.observe.engine_metrics.direct import parse_exposition
from headway_operator.observe.engine_metrics.names import FIELDS, STEPS
from headway_operator.observe.engine_metrics.prometheus import (
    PodName,
    PodSeries,
    Prometheus,
    PrometheusError,
)
from headway_operator.observe.engine_metrics.reading import (
    MAX_CLASSES,
    MetricMissingError,
    Series,
    read_sample,
)
from headway_operator.observe.engine_metrics.sample import HISTORY_SECONDS, Source
from headway_operator.observe.records import PodRecord, ServiceKey
from tests.unit.operator.samples import loading_pod

SERVICE = ServiceKey("team", "demo")


def series(**values: float) -> list[Series]:
    """Every metric that is read, 0 unless given by its field's name."""
    return [Series(metric, "", values.get(name, 0.0)) for name, metric in FIELDS.items()]


def of_class(name: str, **values: float) -> list[Series]:
    return [Series(f"headway_class_{metric}", name, value) for metric, value in values.items()]


def exposition(found: list[Series]) -> str:
    lines = ["# HELP headway_steps_total Engine steps.", "# TYPE headway_steps_total counter"]
    for each in found:
        labels = f'{{class="{each.traffic_class}"}}' if each.traffic_class else ""
        lines.append(f"{each.metric}{labels} {each.value}")
    return "\n".join([*lines, "headway_other_metric 5", ""])


def test_a_sample_is_read_by_the_names_that_sidecars_use() -> None:
    found = series(running=3, kv_usage=0.5, steps_total=100)
    found += of_class("chat", requests_total=10, attained_requests_total=9, recent_tpot_ratio=1.5)
    sample = read_sample(found, at=7.0)
    assert (sample.at, sample.running, sample.kv_usage, sample.steps_total) == (7.0, 3, 0.5, 100)
    assert sample.classes["chat"].attained_total == 9
    assert sample.classes["chat"].tpot_ratio == 1.5
    assert sample.classes["chat"].ttft_ratio is None


@pytest.mark.parametrize("metric", FIELDS.values())
def test_a_metric_that_is_not_there_is_named(metric: str) -> None:
    with pytest.raises(MetricMissingError, match=metric):
        read_sample([each for each in series() if each.metric != metric], at=0)


@given(
    st.lists(st.builds(Series, st.sampled_from([*FIELDS.values(), "x"]), st.text(), st.floats()))
)
def test_whatever_pods_expose_a_sample_holds_only_numbers_that_can_be(found: list[Series]) -> None:
    sample = read_sample([*series(), *found], at=0)
    for name in FIELDS:
        assert 0 <= getattr(sample, name) < float("inf")


def test_a_pod_cannot_make_up_classes_without_end() -> None:
    many = [each for n in range(1000) for each in of_class(f"class-{n}", requests_total=1)]
    assert len(read_sample([*series(), *many], at=0).classes) == MAX_CLASSES


def test_an_exposition_is_read_like_series() -> None:
    found = series(waiting=2) + of_class("chat", requests_total=4)
    assert list(parse_exposition(exposition(found))) == found


def test_what_is_no_exposition_is_refused() -> None:
    with pytest.raises(ValueError, match=r"what"):
        list(parse_exposition(f"{STEPS} what?"))


async def test_a_pod_whose_labels_do_not_end_keeps_no_other_from_being_read() -> None:
    world = World(named("a", "b"), configured=False)
    text = f'{STEPS}{{class="x",\t=\t3}}#{{'
    with pytest.raises(ValueError, match="do not end"):
        list(parse_exposition(text))
    world.direct.texts = {"a": text, "b": exposition(series())}
    assert await world.tick() == {Source.PROMETHEUS: 0, Source.DIRECT_SCRAPE: 1}


# --- Prometheus ---------------------------------------------------------------------------------


@dataclass
class Server:
    """Prometheus's HTTP interface, as far as it is used."""

    answers: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    delay_s: float = 0.0
    body: bytes | None = None
    seen: list[tuple[str, str | None]] = field(default_factory=list)

    async def query(self, request: web.Request) -> web.Response:
        text = str((await request.post())["query"])
        self.seen.append((text, request.headers.get("Authorization")))
        await asyncio.sleep(self.delay_s)
        if self.body is not None:
            return web.Response(body=self.body, status=self.status)
        kind = "ages" if text.startswith("time()") else "values"
        document = {"status": "success", "data": {"result": self.answers.get(kind, [])}}
        return web.json_response(document, status=self.status)


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[str]:
    application = web.Application()
    application.add_routes([web.post("/prefix/api/v1/query", server.query)])
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/prefix/"
    finally:
        await runner.cleanup()


def vector(labels: Mapping[str, str], value: float | str) -> dict[str, Any]:
    return {"metric": dict(labels), "value": [1000.0, str(value)]}


NAMED = {"namespace": "team", "pod": "a"}


async def test_prometheus_is_asked_for_values_and_their_age(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    server = Server(
        {
            "ages": [vector(NAMED, 1.5), vector({**NAMED, "job": "other"}, 90), {"odd": 1}],
            "values": [
                vector({**NAMED, "__name__": STEPS}, 12),
                vector({**NAMED, "__name__": "headway_class_requests_total", "class": "chat"}, 3),
                vector({"namespace": "team", "pod": "unknown", "__name__": STEPS}, 1),
                vector({**NAMED, "__name__": "headway_running_requests"}, "nonsense"),
            ],
        }
    )
    async with serving(server) as url:
        prometheus = Prometheus(url, token_file=token, namespaces=("team",))
        found = await prometheus.newest()
        token.write_text("replaced")
        await prometheus.newest()
        await prometheus.close()
    assert found == {
        ("team", "a"): PodSeries(
            1.5,
            [Series(STEPS, "", 12.0), Series("headway_class_requests_total", "chat", 3.0)],
        )
    }
    assert {header for _, header in server.seen} == {"Bearer secret", "Bearer replaced"}
    assert all('namespace=~"team"' in query for query, _ in server.seen)


async def test_a_pod_whose_scrape_fails_between_the_queries_is_one_that_was_not_scraped() -> None:
    async with serving(Server({"ages": [vector(NAMED, 1.5)], "values": []})) as url:
        prometheus = Prometheus(url)
        found = await prometheus.newest()
        await prometheus.close()
    assert found == {}


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (Server(status=503), "HTTP 503"),
        (Server(status=302), "HTTP 302"),
        (Server(delay_s=5), "does not answer within"),
        (Server(body=b"<html>login secret</html>"), "not Prometheus"),
        (Server(body=b'{"data": {"result": 5}}'), "not Prometheus"),
        (Server(body=b"[" * 100_000), "not Prometheus"),
    ],
    ids=["error", "redirect", "slow", "html", "odd", "nested"],
)
async def test_a_prometheus_in_trouble_is_told_without_quoting_it(
    server: Server, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway_operator.observe.engine_metrics.prometheus.TIMEOUT_SECONDS", 0.3)
    async with serving(server) as url:
        prometheus = Prometheus(url)
        with pytest.raises(PrometheusError, match=said) as raised:
            await prometheus.newest()
        await prometheus.close()
    assert "secret" not in str(raised.value)


async def test_a_prometheus_that_is_not_there_is_told() -> None:
    prometheus = Prometheus("http://user:password@127.0.0.1:1")
    with pytest.raises(PrometheusError, match="cannot be reached") as raised:
        await prometheus.newest()
    await prometheus.close()
    assert "password" not in str(raised.value)


async def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    for prometheus in (
        Prometheus("http://127.0.0.1:1", token_file=tmp_path / "none"),
        Prometheus("https://127.0.0.1:1", ca_file=tmp_path / "none"),
    ):
        with pytest.raises(PrometheusError, match="cannot be read"):
            await prometheus.newest()
        await prometheus.close()


@pytest.mark.parametrize("token", ["secret\nsecret\n", "secret\r\nX-Odd: secret", "sec\0ret"])
async def test_a_token_that_no_header_can_hold_is_told_without_quoting_it(
    tmp_path: Path, token: str
) -> None:
    file = tmp_path / "token"
    file.write_text(token)
    prometheus = Prometheus("http://127.0.0.1:1", token_file=file)
    with pytest.raises(PrometheusError, match="bearer token") as raised:
        await prometheus.newest()
    await prometheus.close()
    assert "ret" not in str(raised.value)


# --- collecting ---------------------------------------------------------------------------------


class FakePrometheus(Prometheus):
    """Answers from a dictionary, or is in trouble."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1")
        self.found: dict[PodName, PodSeries] | PrometheusError = {}

    async def newest(self) -> dict[PodName, PodSeries]:
        if isinstance(self.found, PrometheusError):
            raise self.found
        return self.found


@dataclass
class FakePods:
    """Pods' own expositions, by pod name."""

    texts: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def metrics(self, pod: PodRecord) -> str | None:
        self.asked.append(pod.name)
        return self.texts.get(pod.name)


@dataclass
class World:
    """A collector and everything around it."""

    pods: tuple[PodRecord, ...]
    configured: bool = True
    now: float = 1000.0

    def __post_init__(self) -> None:
        self.prometheus = FakePrometheus()
        self.direct = FakePods()
        source = self.prometheus if self.configured else None
        self.collector = Collector(source, self.direct, lambda: self.now)

    async def tick(self, seconds: float = 5.0) -> dict[Source, int]:
        self.now += seconds
        cluster = Cluster()
        for each in self.pods:
            cluster.pods.put(SERVICE, each)
        return await self.collector.collect(cluster)

    def seen(self) -> Any:
        return self.collector.metrics(self.pods)


def named(*names: str) -> tuple[PodRecord, ...]:
    template = loading_pod()
    return tuple(replace(template, name=name, uid=f"uid-{name}") for name in names)


async def test_prometheus_is_the_source_while_it_is_fresh() -> None:
    world = World(named("a"))
    world.prometheus.found = {("team", "a"): PodSeries(1.0, series(running=2))}
    assert await world.tick() == {Source.PROMETHEUS: 1, Source.DIRECT_SCRAPE: 0}
    metrics = world.seen()
    assert metrics.source is Source.PROMETHEUS
    assert metrics.pods["uid-a"][-1].running == 2
    assert metrics.pods["uid-a"][-1].at == world.now - 1.0
    assert world.direct.asked == []
    assert metrics.trouble == ""


@pytest.mark.parametrize("trouble", ["gone", "late", "does not know the pod"])
async def test_pods_are_asked_while_prometheus_cannot_tell(trouble: str) -> None:
    world = World(named("a"))
    world.direct.texts = {"a": exposition(series(running=4))}
    if trouble == "gone":
        world.prometheus.found = PrometheusError("Prometheus answers HTTP 503")
    elif trouble == "late":
        world.prometheus.found = {("team", "a"): PodSeries(STALE_SECONDS + 1, series())}
    await world.tick()
    metrics = world.seen()
    assert metrics.source is Source.DIRECT_SCRAPE
    assert metrics.pods["uid-a"][-1].running == 4
    assert metrics.trouble
    world.prometheus.found = {("team", "a"): PodSeries(0.5, series(running=5))}
    await world.tick()
    assert world.seen().source is Source.PROMETHEUS
    assert world.seen().trouble == ""
    assert [each.running for each in world.seen().pods["uid-a"]] == [4, 5]


async def test_who_has_asked_nobody_for_a_while_does_not_say_that_nobody_answers() -> None:
    world = World(named("a"))
    assert not world.seen().collected
    await world.tick()
    assert world.seen().collected
    world.now += STALE_SECONDS + 1  # somebody else led, or nobody
    assert not world.seen().collected
    await world.tick()
    assert world.seen().collected


async def test_without_any_source_there_is_nothing_to_act_on() -> None:
    world = World(named("a"))
    world.prometheus.found = {("team", "a"): PodSeries(0.0, series())}
    await world.tick()
    world.prometheus.found = PrometheusError("gone")
    await world.tick(5)
    assert world.seen().source is Source.PROMETHEUS  # two periods old at most
    await world.tick(6)
    assert world.seen().source is None
    assert world.seen().pods == {}


async def test_pods_that_are_gone_never_count() -> None:
    world = World(named("a", "b"))
    both = {("team", name): PodSeries(0.0, series(running=1)) for name in "ab"}
    world.prometheus.found = both
    await world.tick()
    assert set(world.seen().pods) == {"uid-a", "uid-b"}
    world.pods = named("a")
    await world.tick()
    assert set(world.seen().pods) == {"uid-a"}


async def test_another_pod_of_the_same_name_starts_anew() -> None:
    world = World(named("a"))
    world.prometheus.found = {("team", "a"): PodSeries(0.0, series())}
    await world.tick()
    world.pods = (replace(world.pods[0], uid="another"),)
    await world.tick()
    assert len(world.seen().pods["another"]) == 1


async def test_history_is_as_long_as_attainment_needs_it() -> None:
    world = World(named("a"))
    world.prometheus.found = {("team", "a"): PodSeries(0.0, series())}
    for _ in range(30):
        await world.tick()
    history = world.seen().pods["uid-a"]
    assert history[-1].at - history[0].at == HISTORY_SECONDS
    assert [each.at for each in history] == sorted({each.at for each in history})


@pytest.mark.parametrize("source", list(Source))
async def test_a_clock_that_was_set_back_begins_the_history_anew(source: Source) -> None:
    world = World(named("a"))

    def tells(running: float) -> None:
        if source is Source.PROMETHEUS:
            world.prometheus.found = {("team", "a"): PodSeries(1.0, series(running=running))}
        else:
            world.direct.texts = {"a": exposition(series(running=running))}

    tells(0)
    for _ in range(3):
        await world.tick()
    tells(7)
    await world.tick(-3600)
    (sample,) = world.seen().pods["uid-a"]
    assert sample.running == 7
    assert abs(sample.at - world.now) <= 1.0
    assert world.seen().since == world.now
    await world.tick()
    assert len(world.seen().pods["uid-a"]) == 2


async def test_a_source_that_is_later_than_the_other_costs_no_history() -> None:
    world = World(named("a"))
    world.direct.texts = {"a": exposition(series())}
    await world.tick()
    await world.tick()
    world.prometheus.found = {("team", "a"): PodSeries(STALE_SECONDS, series())}
    await world.tick()
    assert len(world.seen().pods["uid-a"]) == 2


async def test_the_same_sample_seen_twice_is_one() -> None:
    world = World(named("a"))
    world.prometheus.found = {("team", "a"): PodSeries(0.0, series())}
    await world.tick()
    world.prometheus.found = {("team", "a"): PodSeries(5.0, series())}
    await world.tick()
    assert len(world.seen().pods["uid-a"]) == 1


async def test_a_pod_that_lacks_a_metric_is_named_and_not_decided_about() -> None:
    world = World(named("a"), configured=False)
    lacking = [each for each in series() if each.metric != STEPS]
    world.direct.texts = {"a": exposition(lacking)}
    await world.tick()
    assert world.seen().missing == STEPS
    assert world.seen().pods == {}
    assert world.seen().trouble == NOT_CONFIGURED


async def test_thousands_of_idle_pods_take_turns_and_busy_ones_do_not_wait() -> None:
    names = [f"pod-{n:04d}" for n in range(3 * IDLE_PODS_A_TICK)]
    world = World(named(*names), configured=False)
    world.direct.texts = {name: exposition(series()) for name in names}
    busy = names[-1]
    world.direct.texts[busy] = exposition(series(running=1))
    assert world.seen().unasked
    for _ in range(3):
        await world.tick()
    assert not world.seen().unasked
    assert set(world.direct.asked) == set(names)
    assert len(world.seen().pods) == len(names)
    world.direct.asked.clear()
    await world.tick()
    assert busy in world.direct.asked
    assert len(world.direct.asked) == IDLE_PODS_A_TICK + 1


async def test_a_pod_that_did_not_answer_is_asked_again_before_others_have_their_turn() -> None:
    names = [f"pod-{n:04d}" for n in range(4 * IDLE_PODS_A_TICK)]
    world = World(named(*names), configured=False)
    world.direct.texts = {name: exposition(series()) for name in names[1:]}
    for _ in range(TRIES):
        assert world.seen().unasked
        await world.tick()
    assert world.direct.asked.count(names[0]) == TRIES
    await world.tick()
    assert world.direct.asked.count(names[0]) == TRIES
    assert not world.collector.metrics(world.pods[:1]).unasked


async def test_a_pod_whose_answers_are_no_metrics_is_not_waited_for() -> None:
    world = World(named("a"), configured=False)
    world.direct.texts = {"a": f'{STEPS}{{rank="0'}
    for _ in range(TRIES):
        assert world.seen().unasked
        await world.tick()
    assert not world.seen().unasked
    world.direct.texts = {"a": exposition(series())}
    await world.tick()
    assert world.seen().source is Source.DIRECT_SCRAPE
