"""What the sidecar tells of single requests."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from headway_runtime.exchange.history_file import Header, HistoryWriter, file_name
from headway_runtime.scheduling.history.lifecycle import State
from headway_runtime.scheduling.history.summary import RequestSummary, Yielded
from headway_runtime.sidecar.request_routes import RequestRoutes
from headway_runtime.sidecar.requests import MOST_TOLD, Requests, request_document
from headway_runtime.sidecar.settings import Settings
from tests.unit.runtime.policies import POD, SERVICE

S = 10**9
NOW_NS = 1_000 * S


def ended(name: str, took_s: float, first_s: float = 0.1, at_s: float = 100, **other: Any) -> Any:
    """A request that arrived at this time and took so long."""
    arrived_ns, took_ns = int(at_s * S), int(took_s * S)
    told = RequestSummary(
        f"chatcmpl-{name}-97395f45",
        "chat",
        state=State.FINISHED,
        arrived_ns=arrived_ns,
        admitted_ns=arrived_ns,
        since_ns=arrived_ns + took_ns,
        first_token_ns=arrived_ns + int(first_s * S),
        ended_ns=arrived_ns + took_ns,
        decoding_ns=took_ns,
        output_tokens=3,
    )
    return told._replace(**other)


def waiting(name: str, at_s: float = 100) -> RequestSummary:
    arrived_ns = int(at_s * S)
    return RequestSummary(
        f"chatcmpl-{name}-97395f45", "chat", arrived_ns=arrived_ns, since_ns=arrived_ns
    )


class Engine:
    """The file of one engine process."""

    def __init__(self, run_dir: Path, rank: int = 0) -> None:
        self.writer = HistoryWriter(run_dir / file_name(rank), Header(under_way=8, ended=256))

    def tell(self, *told: RequestSummary) -> None:
        for each in told:
            slot = None if each.ended_ns else self.writer.begin()
            if slot is None:
                self.writer.append(each)
            else:
                self.writer.write(slot, each)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


def ids(found: list[RequestSummary]) -> list[str]:
    return [each.request_id.split("-")[1] for each in found]


def test_all_requests_with_an_id_are_told_newest_first(engine: Engine, tmp_path: Path) -> None:
    engine.tell(ended("7", 1, at_s=100), ended("8", 1), ended("7", 2, at_s=300))
    Engine(tmp_path, rank=1).tell(ended("7", 3, at_s=200))
    found = Requests(tmp_path, NOW_NS).asked_for("7")
    assert [each.arrived_ns // S for each in found] == [300, 200, 100]


def test_a_request_under_way_grows_older_while_nobody_writes(
    engine: Engine, tmp_path: Path
) -> None:
    engine.tell(waiting("7", at_s=990))
    [found] = Requests(tmp_path, NOW_NS).asked_for("chatcmpl-7")
    assert (found.state, found.waiting_ns) == (State.WAITING, 10 * S)


def test_of_a_request_that_has_ended_its_past_is_not_told(engine: Engine, tmp_path: Path) -> None:
    # As a copy of the file may have it, that was made between the two.
    engine.tell(waiting("7"), ended("7", 1))
    [found] = Requests(tmp_path, NOW_NS).asked_for("7")
    assert found.state == State.FINISHED


def test_the_slowest_are_told_slowest_first(engine: Engine, tmp_path: Path) -> None:
    engine.tell(ended("a", 3, 0.1), ended("b", 9, 0.2), ended("c", 5, 0.3), waiting("d", 996))
    requests = Requests(tmp_path, NOW_NS)
    assert ids(requests.slowest(3)) == ["b", "c", "d"]
    assert ids(requests.slowest(3, by_first_token=True)) == ["d", "c", "b"]


def test_the_slowest_of_a_class_are_told(engine: Engine, tmp_path: Path) -> None:
    others = [ended(f"o{number}", 10 + number) for number in range(20)]
    engine.tell(ended("a", 3, class_name="batch"), *others, ended("b", 2, class_name="batch"))
    assert ids(Requests(tmp_path, NOW_NS).slowest(5, "batch")) == ["a", "b"]


def test_so_many_are_told_at_most(engine: Engine, tmp_path: Path) -> None:
    engine.tell(*[ended("7", 1, at_s=number) for number in range(1, MOST_TOLD + 50)])
    requests = Requests(tmp_path, NOW_NS)
    assert len(requests.asked_for("7")) == len(requests.slowest(1000)) == MOST_TOLD


def test_files_that_cannot_be_read_are_left_out(engine: Engine, tmp_path: Path) -> None:
    engine.tell(ended("7", 1))
    engine.writer.missing(2, 3)
    (tmp_path / file_name(1)).write_bytes(b"x" * 9000)
    requests = Requests(tmp_path, NOW_NS)
    assert (len(requests.asked_for("7")), requests.lost, requests.dropped_spans) == (1, 2, 3)


def test_a_document_tells_what_there_is() -> None:
    told = ended(
        "7",
        2.5,
        1.25,
        tenant="somebody",
        given_up_ns=101 * S,
        yielded_tokens=50,
        yielded=(Yielded("batch", "", 40),),
        preemptions=2,
    )
    document = request_document(told)
    assert (document["id"], document["state"]) == ("chatcmpl-7-97395f45", "Finished")
    assert (document["class"], document["tenant"]) == ("chat", "somebody")
    assert document["firstTokenAfterSeconds"] == 1.25
    assert document["ttftGivenUpAfterSeconds"] == 1.0
    assert document["endedAfterSeconds"] == document["seconds"]["decoding"] == 2.5
    assert document["preemptions"] == 2
    assert document["yielded"]["to"] == [{"class": "batch", "tenant": None, "promptTokens": 40}]
    assert document["explanation"][1] == "After 2.5 s it was complete."


def test_what_has_not_come_to_pass_is_null() -> None:
    document = request_document(waiting("7"))
    for name in ("tenant", "admittedAfterSeconds", "firstTokenAfterSeconds", "endedAfterSeconds"):
        assert document[name] is None
    assert document["tokens"]["output"] is None


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Any]:
    application = web.Application()
    application.add_routes(RequestRoutes(Settings(tmp_path, tmp_path, SERVICE, POD)).routes())
    async with TestClient(TestServer(application)) as made:
        yield made


async def ask(client: Any, path: str) -> tuple[int, Any]:
    async with client.get(path) as answer:
        return answer.status, json.loads(await answer.text())


async def test_a_request_is_asked_for_by_id(engine: Engine, client: Any) -> None:
    engine.tell(ended("7", 1), ended("8", 1))
    status, answer = await ask(client, "/requests/chatcmpl-7")
    assert (status, [each["id"] for each in answer["requests"]]) == (200, ["chatcmpl-7-97395f45"])
    assert (answer["lostHistories"], answer["droppedSpans"]) == (0, 0)


@pytest.mark.parametrize("name", ["a/b", "a b", "ü", "a%3Fb", "a\nb"])
async def test_ids_may_be_whatever_clients_say(engine: Engine, client: Any, name: str) -> None:
    engine.tell(ended(name, 1))
    encoded = "".join(f"%{each:02X}" for each in name.encode())
    async with client.get(f"/requests/{encoded}") as answer:
        text = await answer.text()
    assert (answer.status, len(json.loads(text)["requests"])) == (200, 1)
    # Nothing of it gets to a terminal as it is.
    assert text.isascii()
    assert "\n" not in text


async def test_an_unknown_id_is_not_found_and_the_answer_tells_what_to_do(
    engine: Engine, client: Any
) -> None:
    engine.tell(ended("7", 1))
    status, answer = await ask(client, "/requests/9")
    assert status == 404
    for hint in ("4096", "X-Request-Id", "other pods"):
        assert hint in answer["message"]


async def test_the_slowest_are_asked_for(engine: Engine, client: Any) -> None:
    now_s = time.time()
    engine.tell(
        ended("a", 3, 2, at_s=now_s - 60),
        ended("b", 9, 1, at_s=now_s - 60),
        ended("c", 9, 3, at_s=now_s - 60, class_name="batch"),
    )

    async def found(query: str) -> list[str]:
        _, answer = await ask(client, f"/requests{query}")
        return [each["id"].split("-")[1] for each in answer["requests"]]

    assert await found("?slowest=1&class=chat") == ["b"]
    assert await found("?slowest=2&class=chat&by=firstToken") == ["a", "b"]
    assert await found("?class=batch") == ["c"]
    assert len(await found("")) == 3
    assert await found("?class=unknown") == []


@pytest.mark.parametrize("query", ["slowest=0", "slowest=x", "slowest=101", "slowest=-1", "by=me"])
async def test_a_question_that_makes_no_sense_is_a_bad_request(client: Any, query: str) -> None:
    status, answer = await ask(client, f"/requests?{query}")
    assert (status, "must be" in answer["message"]) == (400, True)
