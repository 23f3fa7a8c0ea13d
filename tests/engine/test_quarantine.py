"""A request that kills a real engine is found out among others, and refused."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.waiting import wait_until
from tests.engine.asking import Answer
from tests.engine.pod import Pod, running
from tests.engine.processes import free_ports
from tests.engine.sharing import policy

pytestmark = pytest.mark.timeout(2_400)
"""An engine starts three times, each in a minute or, on a busy machine, in several."""

FAULTS = Path(__file__).parent / "faults"
MAGIC_TOKEN = 31_337
POISON = {"prompt": [5, 6, MAGIC_TOKEN, 7], "max_tokens": 3}
DECODES = {"prompt": [11, 12, 13], "max_tokens": 100, "ignore_eos": True}
COMPUTES_ITS_PROMPT = {"prompt": [*range(2000, 2900)], "max_tokens": 2}
HARMLESS = {"prompt": [21, 22, 23], "max_tokens": 2}


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Pod]:
    made = Pod(
        tmp_path,
        free_ports(),
        flags=["--logits-processors", "poisonable:Poisonable"],
        libraries=[FAULTS],
    )
    with running(made, policy(token_budget=32)) as found:
        yield found


def send(pod: Pod, threads: ThreadPoolExecutor, document: dict[str, Any]) -> Future[Answer]:
    return threads.submit(pod.ask, document)


def status(answer: Future[Answer]) -> int:
    """The status that a client saw; 0 where the engine has ended before it answered."""
    try:
        return answer.result().status
    except OSError:
        return 0


def until_running(pod: Pod, count: int) -> None:
    wait_until(
        lambda: pod.metrics()["headway_running_requests",],
        lambda found: found >= count,
        timeout_s=60,
        what=f"{count} running requests",
        period_s=0.02,
    )


def held(pod: Pod) -> list[tuple[str, int]]:
    told = pod.told(1, "/quarantine").document["requests"]
    return [(each["standing"], each["crashes"]) for each in told]


def test_what_kills_the_engine_twice_is_refused_and_nobody_else(pod: Pod) -> None:
    with ThreadPoolExecutor() as threads:
        assert pod.ask(HARMLESS).status == 200
        beside = [send(pod, threads, DECODES)]
        until_running(pod, 1)
        beside.append(send(pod, threads, COMPUTES_ITS_PROMPT))
        until_running(pod, 2)
        first = send(pod, threads, POISON)
        assert status(first) in (0, 500)
        pod.ended(timeout_s=600)
        assert {status(each) for each in beside} <= {0, 500}

        # All of them are sent again at once, as clients do.
        pod.start_engine()
        assert pod.metrics()["headway_engine_crashes_total",] == 1
        # Who had a token is not suspected; the other two are, and tried one after the other.
        assert held(pod) == [("Tried", 1), ("Tried", 1)]
        again = [
            send(pod, threads, document) for document in (DECODES, COMPUTES_ITS_PROMPT, POISON)
        ]
        pod.ended(timeout_s=600)
        assert status(again[-1]) in (0, 500)

        pod.start_engine()
        assert ("Quarantined", 2) in held(pod)
        assert pod.metrics()["headway_engine_crashes_total",] == 2
        assert pod.metrics()["headway_quarantined_requests",] == 1
        refused = pod.ask({**POISON, "stream": True, "user": "another"})
        assert refused.status == 422
        assert "Quarantined" in refused.document["error"]["message"]
        assert "retry-after" not in refused.headers
        # Whoever of them was without a token is cleared by its answer.
        for document in (COMPUTES_ITS_PROMPT, DECODES):
            neighbour, other = (send(pod, threads, each) for each in (document, HARMLESS))
            assert (status(neighbour), status(other)) == (200, 200)
        assert pod.ask(POISON).status == 422
        assert held(pod) == [("Quarantined", 2)]
        assert pod.metrics()["headway_quarantine_refusals_total",] == 2
        assert pod.is_alive
