"""What the door decides holds over all API servers of a real engine; so do metrics, and its end.

The last test stops the engine that these tests share.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headway_runtime.exchange import suspects_file, under_way_file
from headway_runtime.exchange.fingerprint import Fingerprints
from headway_runtime.exchange.suspects_file import SuspectsWriter, Told
from headway_runtime.exchange.under_way_file import read_under_way
from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.quarantine.suspects import Suspect
from tests.e2e.waiting import wait_until
from tests.engine.asking import Answer
from tests.engine.pod import SERVED_MODEL, Pod
from tests.engine.sharing import BATCH, key, policy

SERVERS = {"ApiServer_0", "ApiServer_1"}
SHORT = TrafficClass("short", max_queued=1)
BY_FEW = key("few")
RUNS_LONG = {"prompt": [5, 6, 7], "max_tokens": 700, "ignore_eos": True}
_ANSWERED = re.compile(r'\((\w+) pid=\d+\) INFO: .*"POST /v1/completions HTTP/1.1" (\d+)')

_numbers = count(1)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as pool:
        yield pool


def asked(tokens: int, output: int = 2, **other: Any) -> dict[str, Any]:
    """A request that nobody made before."""
    first = 2000 + next(_numbers)
    prompt = [first, *range(3000, 2999 + tokens)]
    return {"prompt": prompt, "max_tokens": output, "ignore_eos": True, **other}


def answered(pod: Pod) -> Counter[tuple[str, int]]:
    """Answers of each API server, by status, as it logs them."""
    return Counter((server, int(status)) for server, status in _ANSWERED.findall(pod.log))


def by_server(pod: Pod, before: Counter[tuple[str, int]], status: int = 200) -> set[str]:
    """API servers that have answered so since then."""
    return {server for server, each in answered(pod) - before if each == status}


def running(pod: Pod) -> float:
    return pod.metrics()["headway_running_requests",]


def until_running(pod: Pod, wanted: int) -> None:
    what = f"{wanted} running requests"
    wait_until(lambda: running(pod), lambda found: found >= wanted, 60, what, period_s=0.02)


def of_vllm(pod: Pod, name: str) -> list[float]:
    """Values of all series of one of vLLM's own metrics."""
    families = text_string_to_metric_families(pod.told(0, "/metrics").document)
    return [each.value for family in families for each in family.samples if each.name == name]


def test_both_answer_and_vllms_metrics_are_of_both(pod: Pod, threads: ThreadPoolExecutor) -> None:
    pod.push(policy())
    before, served = answered(pod), sum(of_vllm(pod, "vllm:request_success_total"))
    calls = [threads.submit(pod.ask, asked(20, 30), BY_FEW) for _ in range(8)]
    assert [each.result().status for each in calls] == [200] * 8
    assert by_server(pod, before) == SERVERS
    # Whichever of them is asked.
    for _ in range(4):
        assert sum(of_vllm(pod, "vllm:request_success_total")) == served + 8
        assert of_vllm(pod, "vllm:num_requests_running") == [0]
        assert len(of_vllm(pod, "vllm:cache_config_info")) == 1


def test_a_queue_that_is_full_is_full_for_both(pod: Pod, threads: ThreadPoolExecutor) -> None:
    pod.push(policy(classes=(SHORT, BATCH), max_batch_size=1))
    before, refused = answered(pod), pod.metrics()
    key_of_refusals = ("headway_refused_requests_total", "short", "QueueFull")
    short = {"vllm_xargs": {"headway_class": "short"}}
    with pod.asking(RUNS_LONG, BY_FEW):
        until_running(pod, 1)
        calls = [threads.submit(pod.ask, asked(20, 2, **short), BY_FEW) for _ in range(12)]
        wait_until(
            lambda: sum(each.done() for each in calls),
            lambda done: done >= len(calls) - 2,
            timeout_s=60,
            what="refusals",
        )
    statuses = Counter(each.result().status for each in calls)
    # Two that are decided on at the same moment, in two processes, do not see each other.
    assert statuses[200] in (1, 2)
    assert statuses[200] + statuses[503] == len(calls)
    assert by_server(pod, before, 503) == SERVERS
    grown = pod.metrics()[key_of_refusals] - refused.get(key_of_refusals, 0)
    assert grown == statuses[503]


def suspected(pod: Pod, documents: list[dict[str, Any]]) -> None:
    """An engine before this one has died with these under way."""
    prints = Fingerprints.of_run(pod.run_dir)
    suspect = Suspect("few", before_token=1, in_all=1, last_s=time.time() - 30)
    bodies = [{"model": SERVED_MODEL, **document} for document in documents]
    suspects = {prints.of(b"", each): suspect for each in bodies}
    writer = SuspectsWriter(pod.run_dir / suspects_file.file_name(0))
    writer.write(Told(1, suspects))
    writer.close()


def test_suspects_are_tried_one_at_a_time_whoever_takes_them_in(
    pod: Pod, threads: ThreadPoolExecutor
) -> None:
    pod.push(policy())
    suspects = [asked(20, 60) for _ in range(6)]
    suspected(pod, suspects)
    wait_until(
        lambda: len(pod.told(1, "/quarantine").document["requests"]),
        lambda found: found == len(suspects),
        timeout_s=30,
        what="suspects",
    )
    # Doors look once a second.
    time.sleep(1.5)
    before = answered(pod)
    calls = [threads.submit(pod.ask, each, BY_FEW) for each in suspects]
    most = 0.0
    while not all(each.done() for each in calls):
        most = max(most, running(pod))
    assert [each.result().status for each in calls] == [200] * len(suspects)
    assert by_server(pod, before) == SERVERS
    assert most == 1
    suspected(pod, [])


def test_what_is_under_way_is_finished_before_the_engine_ends(
    pod: Pod, threads: ThreadPoolExecutor
) -> None:
    pod.push(policy())
    before = answered(pod)
    calls = [threads.submit(pod.ask, asked(20, 150), BY_FEW) for _ in range(4)]
    until_running(pod, 4)
    pod.terminate()
    answers: list[Answer] = [each.result() for each in calls]
    assert [each.document["usage"]["completion_tokens"] for each in answers] == [150] * 4
    assert by_server(pod, before) == SERVERS
    assert pod.exit_code == 0
    assert read_under_way(pod.run_dir / under_way_file.file_name(0)) == ()
