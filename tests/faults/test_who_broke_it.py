"""A request kills the engine each time it comes: it is found out and refused.

After the model's faults, as it starts an engine of its own in any case.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.service import Service
from tests.e2e.waiting import wait_until
from tests.faults.changing import create
from tests.faults.conftest import MODEL, RecordFault, put_right
from tests.faults.poison import answer_to

pytestmark = pytest.mark.cluster

FAULTY = Path(__file__).parents[1] / "engine" / "faults" / "poisonable.py"
MOUNTED = "/faults"
POISON = json.dumps({"model": MODEL, "prompt": [5, 6, 31_337, 7], "max_tokens": 3}).encode()


def with_the_fault(document: dict[str, Any]) -> None:
    """The engine has a logits processor that fails on one token."""
    engine = document["spec"]["engine"]
    engine["args"].append(f"--logits-processors={FAULTY.stem}:Poisonable")
    engine["env"].append({"name": "PYTHONPATH", "value": MOUNTED})
    engine["volumes"].append({"name": "faults", "configMap": {"name": "faults"}})
    engine["volumeMounts"].append({"name": "faults", "mountPath": MOUNTED})


@pytest.fixture
def breakable(warm: Service) -> Service:
    code = {FAULTY.name: FAULTY.read_text(encoding="utf-8")}
    metadata = {"name": "faults"}
    create(warm, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": code})
    return put_right(warm, pods=1, change=with_the_fault)


def test_request_kills_the_engine(breakable: Service, record: RecordFault) -> None:
    """A request that kills the engine, and comes again.

    The engine has a logits processor that fails on one token. A request with it in its prompt is
    sent, and sent again as soon as the engine is back, as clients do. Nothing is repaired.
    """
    url = f"http://{breakable.cluster_ip()}/v1/completions"
    with record(breakable) as fault:
        fault.cause("the request is sent for the first time")
        for again in ("second", "third"):
            fault.did(f"its client sees: {answer_to(url, POISON)}")
            breakable.wait_for("Ready", "False", timeout_s=120)
            breakable.wait_for("Ready", "True", timeout_s=400)
            fault.did(f"the request is sent for the {again} time")
        refused = answer_to(url, POISON)
        refused_s = fault.now_s()
        fault.did(f"its client sees: {refused}")
        wait_until(
            lambda: fault.seen("event", "Warning RequestQuarantined"),
            bool,
            timeout_s=90,
            what="an event about the request",
        )
        fault.recording.marks["shown"] = fault.now_s()
        fault.recovered(breakable)
    assert refused == "HTTP 422"
    later = [each for each in fault.recording.requests if each.offered_s > refused_s]
    assert [each.error for each in later if each.error] == []
