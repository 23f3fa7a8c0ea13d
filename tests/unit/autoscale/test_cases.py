"""What is offered."""

from __future__ import annotations

from pathlib import Path

from headway_runtime.bench.traces import read_azure
from tests.autoscale.cases import SPREAD_SECONDS, Case

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def offered(folder: Path, **changes: float) -> list[float]:
    rows = [f"2023-11-16 18:{minute:02}:00.0000000,100,10\n" for minute in range(20)]
    (folder / "trace.csv").write_text(HEADER + "".join(rows))
    case = Case("few", "trace.csv", read_azure, 1, 1000, 100, (0, 20), **changes)  # type: ignore[arg-type] # by name
    return [each.at for each in case.arrivals(folder, seed=1)]


def test_a_trace_is_offered_as_it_was_recorded(tmp_path: Path) -> None:
    assert offered(tmp_path) == [60.0 * minute for minute in range(20)]


def test_many_times_as_many_users_send_at_about_the_same_time(tmp_path: Path) -> None:
    found = offered(tmp_path, times=50)
    assert len(found) == 20 * 50
    assert all(at % 60 <= SPREAD_SECONDS for at in found)
    assert len(set(found)) > 900


def test_a_part_of_the_users_sends_a_part_of_the_requests(tmp_path: Path) -> None:
    assert 3 <= len(offered(tmp_path, times=0.5)) <= 17


def test_users_that_grow_in_number_end_with_so_many_more(tmp_path: Path) -> None:
    found = offered(tmp_path, times=1, grows=1000)
    begin, end = (sum(low <= at < low + 60 for at in found) for low in (0, 1140))
    assert begin == 1
    assert 650 <= end <= 750  # 1000 ** (19 / 20)
