"""A service whose engines were tuned below what it declares."""

from __future__ import annotations

from headway_operator.memory.tuning import OperatingPoint, Tuning
from headway_operator.snapshot import Snapshot
from tests.unit.operator.samples import ready_pod, service, snapshot, spec

CLASSES = [
    {"name": "chat", "ttftMilliseconds": 500, "tpotMilliseconds": 30},
    {"name": "batch", "deadlineSeconds": 600},
]
POINT = OperatingPoint(250_000, token_budget=256, max_batch_size=8, background_limit=4)


def tuned(mode: str = "Act", **scheduling: int) -> Snapshot:
    fields = spec(
        classes=CLASSES,
        scheduling={"mode": mode, **scheduling},
        engine={"maxNumSeqs": 64, "maxNumBatchedTokens": 2048},
    )
    return snapshot(service(fields), ready_pod(), tuning=Tuning(POINT))
