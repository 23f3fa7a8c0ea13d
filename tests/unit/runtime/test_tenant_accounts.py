"""What becomes of tenants' requests, from the engine's events to the sidecar's metrics."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from headway_runtime.exchange.tenant_totals import TenantTotalsWriter, file_name, read_totals
from headway_runtime.executors.vllm.class_accounts import ClassAccounts
from headway_runtime.executors.vllm.request_histories import RequestHistories
from headway_runtime.executors.vllm.tenant_accounts import TenantAccounts
from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.tenants.totals import OTHERS, PLACES, TenantTotals
from headway_runtime.sidecar.tenant_metrics import tenant_metrics
from tests.unit.runtime.engines import core_output, request
from tests.unit.runtime.policies import policy

NOW_S = 1_700_000_000
HASTY = TrafficClass("hasty", ttft_ms=1)


class Bench:
    """Histories of requests whose tenant is in front of their name."""

    def __init__(self, run_dir: Path) -> None:
        accounts = ClassAccounts()
        accounts.adopt(policy(1, 1, 1, classes=(HASTY,)))
        writer = TenantTotalsWriter(run_dir / file_name(0))
        self.histories = RequestHistories(
            accounts,
            tenant_of=lambda request: request.request_id.partition("/")[0],
            tenants=TenantAccounts(writer),
        )
        self._run_dir = run_dir

    def ends(self, name: str, reason: str, kind: str | None = None, tokens: int = 3) -> None:
        made: Any = request(name, NOW_S, None if kind is None else {"headway_class": kind})
        self.histories.arrived(made, NOW_S * 10**9)
        made.num_output_tokens = tokens
        outputs = [core_output(name, tokens, reason)]
        after_ns = (NOW_S + 1) * 10**9
        self.histories.tokens_came({0: SimpleNamespace(outputs=outputs)}, after_ns)
        self.histories.write(after_ns)

    def totals(self) -> dict[str, TenantTotals]:
        return read_totals(self._run_dir)


def test_ends_count_for_the_tenant_whatever_the_class(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.ends("a/1", "STOP")
    bench.ends("a/2", "LENGTH", "hasty")
    bench.ends("a/3", "ERROR")
    bench.ends("b/1", "STOP")
    bench.ends("/1", "STOP")
    assert bench.totals() == {
        "a": TenantTotals(3, 1, 0, 9),
        "b": TenantTotals(1, 1, 0, 3),
        OTHERS: TenantTotals(1, 1, 0, 3),
    }


def test_of_what_a_client_gave_up_only_its_tokens_count(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.ends("a/1", "ABORT", tokens=7)
    assert bench.totals()["a"] == TenantTotals(0, 0, 0, 7)


def samples(totals: dict[str, TenantTotals]) -> dict[tuple[str, ...], float]:
    return {
        (each.name, *each.labels.values()): each.value
        for metric in tenant_metrics(totals)
        for each in metric.samples
    }


def test_metrics_tell_each_tenant_and_all_others() -> None:
    found = samples({OTHERS: TenantTotals(5, 4, 3, 2), "a": TenantTotals(2, 1, 10, 20)})
    assert found == {
        ("headway_tenant_requests_total", "a"): 2,
        ("headway_tenant_requests_total", OTHERS): 5,
        ("headway_tenant_attained_requests_total", "a"): 1,
        ("headway_tenant_attained_requests_total", OTHERS): 4,
        ("headway_tenant_tokens_total", "a", "Prompt"): 10,
        ("headway_tenant_tokens_total", "a", "Generated"): 20,
        ("headway_tenant_tokens_total", OTHERS, "Prompt"): 3,
        ("headway_tenant_tokens_total", OTHERS, "Generated"): 2,
    }


def test_where_nobody_is_told_apart_there_are_no_series() -> None:
    assert samples({}) == samples({OTHERS: TenantTotals(5, 4, 3, 2)}) == {}


def test_several_engine_processes_have_no_more_series_than_one() -> None:
    many = {f"t{number:02}": TenantTotals(1, 1, number, 0) for number in range(3 * PLACES)}
    names = {key[1] for key in samples({OTHERS: TenantTotals(), **many})}
    assert names == {OTHERS, *(f"t{number:02}" for number in range(2 * PLACES, 3 * PLACES))}
