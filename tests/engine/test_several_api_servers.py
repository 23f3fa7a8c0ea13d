"""What the door decides holds over all API servers of a real engine; so do metrics, and its end.

The last test stops the engine that these tests share.
"""

from __future__ import annotations

import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headway_runtime.exchange import process_files, suspects_file, under_way_file
from headway_runtime.exchange.fingerprint import Fingerprints
from headway_runtime.exchange.refusal_counts import KIND, read_counts
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
RUNS_LONG = {"prompt": [5, 6, 7], "max_tokens": 900, "ignore_eos": True}
DOORS_LOOK_S = 1.5
"""Doors look once a second who is suspected."""

_TAKEN_IN = re.compile(r"\((\w+) pid=\d+\) .*Received request ")

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


def taken_in(pod: Pod) -> Counter[str]:
    """Requests that each API server has handed to the engine."""
    return Counter(_TAKEN_IN.findall(pod.log))


def refused(pod: Pod, folder: Path) -> list[int]:
    """Requests that each door has refused."""
    found = []
    for path in process_files.find_files(pod.run_dir, KIND).values():
        alone = folder / f"{next(_numbers)}"
        alone.mkdir()
        shutil.copy(path, alone)
        found.append(sum(read_counts(alone).values()))
    return found


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
    served, before = sum(of_vllm(pod, "vllm:request_success_total")), taken_in(pod)

    def servers() -> set[str]:
        calls = [threads.submit(pod.ask, asked(20, 30), BY_FEW) for _ in range(8)]
        assert [each.result().status for each in calls] == [200] * 8
        return set(taken_in(pod) - before)

    # One is there before the other, and accepts what the other is too busy for.
    wait_until(servers, lambda found: found == SERVERS, timeout_s=120, what="answers of both")
    served += sum((taken_in(pod) - before).values())
    # Whichever of them is asked.
    for _ in range(4):
        assert sum(of_vllm(pod, "vllm:request_success_total")) == served
        assert of_vllm(pod, "vllm:num_requests_running") == [0]
        assert len(of_vllm(pod, "vllm:cache_config_info")) == 1


def test_a_queue_that_is_full_is_full_for_both(
    pod: Pod, threads: ThreadPoolExecutor, tmp_path: Path
) -> None:
    pod.push(policy(classes=(SHORT, BATCH), max_batch_size=1))
    short = {"vllm_xargs": {"headway_class": "short"}}
    calls: list[Future[Answer]] = []

    def least_refused() -> int:
        calls.extend(threads.submit(pod.ask, asked(20, 2, **short), BY_FEW) for _ in range(8))
        wait_until(
            lambda: sum(each.done() for each in calls),
            lambda done: done >= len(calls) - len(SERVERS),
            timeout_s=60,
            what="refusals",
        )
        return min(refused(pod, tmp_path))

    with pod.asking(RUNS_LONG, BY_FEW):
        until_running(pod, 1)
        wait_until(least_refused, bool, timeout_s=60, what="refusals by both")
    statuses = Counter(each.result().status for each in calls)
    # Two that are decided on at the same moment, in two processes, do not see each other.
    assert statuses[200] in (1, 2)
    assert statuses[200] + statuses[503] == len(calls)
    told = pod.metrics()["headway_refused_requests_total", "short", "QueueFull"]
    assert told == sum(refused(pod, tmp_path)) == statuses[503]


def suspected(pod: Pod, documents: list[dict[str, Any]]) -> None:
    """An engine before this one has died with these under way."""
    prints = Fingerprints.of_run(pod.run_dir)
    suspect = Suspect("few", before_token=1, in_all=1, last_s=time.time() - 30)
    bodies = [{"model": SERVED_MODEL, **document} for document in documents]
    suspects = {prints.of(b"", each): suspect for each in bodies}
    writer = SuspectsWriter(pod.run_dir / suspects_file.file_name(0))
    writer.write(Told(1, suspects))
    writer.close()
    time.sleep(DOORS_LOOK_S)


def test_suspects_are_tried_one_at_a_time_whoever_takes_them_in(
    pod: Pod, threads: ThreadPoolExecutor
) -> None:
    pod.push(policy())
    before, most = taken_in(pod), set[float]()

    def servers() -> set[str]:
        suspects = [asked(20, 6) for _ in range(6)]
        suspected(pod, suspects)
        calls = [threads.submit(pod.ask, each, BY_FEW) for each in suspects]
        while not all(each.done() for each in calls):
            most.add(running(pod))
        assert [each.result().status for each in calls] == [200] * len(suspects)
        return set(taken_in(pod) - before)

    wait_until(servers, lambda found: found == SERVERS, timeout_s=120, what="trials by both")
    assert max(most) == 1
    suspected(pod, [])


def test_what_is_under_way_is_finished_before_the_engine_ends(
    pod: Pod, threads: ThreadPoolExecutor
) -> None:
    pod.push(policy())
    calls = [threads.submit(pod.ask, asked(20, 60), BY_FEW) for _ in range(4)]
    until_running(pod, 4)
    pod.terminate()
    answers: list[Answer] = [each.result() for each in calls]
    assert [each.document["usage"]["completion_tokens"] for each in answers] == [60] * 4
    assert pod.exit_code == 0
    assert read_under_way(pod.run_dir / under_way_file.file_name(0)) == ()
