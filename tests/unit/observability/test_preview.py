"""The preview: every query is run, errors fail it, the page needs nothing from outside."""

from __future__ import annotations

import json
import re
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from dashboards import preview
from dashboards.prometheus_range import Prometheus, QueryError, TimeRange
from tests.unit.observability.documents import panels

END = 1_700_000_000.0
Answer = Callable[[dict[str, str]], tuple[int, Any]]


@dataclass
class FakePrometheus:
    """Answers each query as it is told to and remembers all of them."""

    answer: Answer
    queries: list[dict[str, str]] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def prometheus() -> Iterator[FakePrometheus]:
    fake = FakePrometheus(answer=lambda query: (200, matrix({"class": "chat"}, query)))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            query = dict(urllib.parse.parse_qsl(body))
            fake.queries.append(query)
            status, document = fake.answer(query)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(document).encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        fake.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield fake
        server.shutdown()
        thread.join()


def matrix(labels: dict[str, str], query: dict[str, str], value: str = "0.5") -> dict[str, Any]:
    """Prometheus's answer: one series with a value at the range's start and end."""
    values = [[float(query["start"]), value], [float(query["end"]), value]]
    result = [{"metric": labels, "values": values}]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def nothing(_: dict[str, str]) -> tuple[int, Any]:
    return 200, {"status": "success", "data": {"resultType": "matrix", "result": []}}


def run(fake: FakePrometheus, output: Path) -> int:
    options = ("--namespace", "team-a", "--service", "chat", "--end", str(END), "--minutes", "10")
    return preview.main(["--prometheus", fake.url, *options, str(output)])


def test_every_query_of_every_panel_is_run_with_the_variables_filled_in(
    prometheus: FakePrometheus, tmp_path: Path
) -> None:
    assert run(prometheus, tmp_path / "page.html") == 0
    assert len(prometheus.queries) == sum(len(panel["targets"]) for panel in panels().values())
    for query in prometheus.queries:
        assert 'namespace="team-a", headway_service="chat"' in query["query"]
        assert "$" not in query["query"]
        assert float(query["end"]) == END
        # An instant query is asked for the end alone.
        assert float(query["start"]) in {END, END - 600}


def test_the_page_shows_every_panel_and_needs_nothing_from_outside(
    prometheus: FakePrometheus, tmp_path: Path
) -> None:
    output = tmp_path / "page.html"
    run(prometheus, output)
    text = output.read_text()
    for title, panel in panels().items():
        assert f"<h2>{title}</h2>" in text
        drawn = f'id="panel-{panel["id"]}"' in text
        assert drawn == (panel["type"] == "timeseries")
    assert re.findall(r"<(?:script|link|img)[^>]*\b(?:src|href)=", text) == []


def test_a_refused_query_fails_the_preview_and_is_named(
    prometheus: FakePrometheus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(query: dict[str, str]) -> tuple[int, Any]:
        if "theta" in query["query"]:
            return 400, {"status": "error", "errorType": "bad_data", "error": "parse error"}
        return nothing(query)

    prometheus.answer = answer
    assert run(prometheus, tmp_path / "page.html") == 1
    said = capsys.readouterr()
    assert said.err == "error: Switching threshold theta: bad_data: parse error\n"
    assert "bad_data: parse error" in (tmp_path / "page.html").read_text()


def test_panels_without_data_are_listed(
    prometheus: FakePrometheus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(query: dict[str, str]) -> tuple[int, Any]:
        if "theta" in query["query"]:
            return nothing(query)
        if "tpot" in query["query"]:
            return 200, matrix({}, query, "NaN")
        return 200, matrix({}, query)

    prometheus.answer = answer
    assert run(prometheus, tmp_path / "page.html") == 0
    assert capsys.readouterr().out.splitlines() == [
        "no data: Time per output token over its objective",
        "no data: Switching threshold theta",
    ]


def test_labels_of_series_are_shown_as_text(prometheus: FakePrometheus, tmp_path: Path) -> None:
    prometheus.answer = lambda query: (200, matrix({"class": "<b>x</b>"}, query))
    run(prometheus, tmp_path / "page.html")
    assert "<b>x</b>" not in (tmp_path / "page.html").read_text()


def test_a_prometheus_that_is_not_there_is_an_error_of_every_panel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = FakePrometheus(answer=nothing, url="http://127.0.0.1:1")
    assert run(fake, tmp_path / "page.html") == 1
    errors = capsys.readouterr().err
    assert all(f"error: {title}: Prometheus cannot be reached" in errors for title in panels())


def test_something_else_that_answers_is_not_taken_for_prometheus(
    prometheus: FakePrometheus,
) -> None:
    prometheus.answer = lambda _: (200, "hello")
    with pytest.raises(QueryError, match="is not Prometheus"):
        Prometheus(prometheus.url).query_range("up", TimeRange(END - 60, END, 1))


def test_only_http_is_asked() -> None:
    with pytest.raises(ValueError, match="http"):
        Prometheus("file:///etc/passwd")


def test_rates_look_back_over_several_scrapes() -> None:
    fine = preview.grafana_variables("n", "s", TimeRange(0, 600, 2), scrape_seconds=1)
    coarse = preview.grafana_variables("n", "s", TimeRange(0, 86_400, 216), scrape_seconds=15)
    assert fine["__rate_interval"] == "4s"
    assert coarse["__rate_interval"] == "231s"
    assert coarse["__range"] == "86400s"
