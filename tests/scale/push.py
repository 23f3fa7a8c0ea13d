"""``make bench-push``: how fast a decision reaches a thousand pods.

The operator's own code signs and pushes in this process; the sidecars' own code listens in another
one, a thousand times. So one process does the work that is a thousand pods' in a cluster, and both
share the machine. A pod counts as reached when the operator has its acknowledgement.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import math
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from headway_operator.act.lease import Leadership
from headway_operator.act.push import PolicyPusher
from headway_operator.act.signing import CURRENT, KeyRing
from headway_operator.api.labels import SIDECAR
from headway_operator.observe.records import ContainerRecord, PodRecord
from headway_operator.observe.sidecar_client import SidecarClient
from headway_operator.observe.sidecars import ACCEPTED, Outcome, Sidecars
from headway_runtime.exchange import policy_file
from headway_runtime.policy import Policy, Scope, Stamp, TrafficClass, decode, encode
from headway_runtime.sidecar.policies import BASELINE_FILE
from headway_runtime.sidecar.settings import Settings
from headway_runtime.sidecar.verification import KEYS_FILE
from tests.scale import listeners, results
from tests.scale.processor_time import cpu_seconds

EPOCH = 29_000_000
"""A term of leadership as the operator counts them."""

_SPARE_FILES = 512
_CLASSES = (
    TrafficClass("interactive", ttft_ms=500, deadline_s=30),
    TrafficClass("chat", ttft_ms=1000, deadline_s=60),
    TrafficClass("agents", ttft_ms=2000, deadline_s=300),
    TrafficClass("batch", deadline_s=3600),
)


class Leader(Leadership):
    """Leadership that needs no cluster."""

    def __init__(self) -> None:
        """Nothing is acquired."""

    @property
    def epoch(self) -> int | None:
        """The term."""
        return EPOCH


class AcknowledgementClock(Sidecars):
    """What the operator knows of sidecars, and when it came to know."""

    def __init__(self) -> None:
        super().__init__()
        self.acknowledged_at: dict[str, float] = {}

    def pushed(self, pod_uid: str, outcome: Outcome, stamp: Stamp | None) -> bool:
        """Note the time of an acceptance."""
        if outcome in ACCEPTED:
            self.acknowledged_at[pod_uid] = time.perf_counter()
        return super().pushed(pod_uid, outcome, stamp)


@dataclass
class Decision:
    """What became of one decision.

    Attributes:
        delays_ms: from the decision to each pod's acknowledgement; infinite where none came.
        verified: pods in which the policy was found afterwards.
        operator_cpu_s, sidecars_cpu_s: processor time the two processes used for it.
    """

    delays_ms: list[float] = field(repr=False)
    verified: int
    operator_cpu_s: float
    sidecars_cpu_s: float

    @property
    def missing(self) -> int:
        """Pods that did not acknowledge."""
        return sum(map(math.isinf, self.delays_ms))


def main() -> int:
    """Measure and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="results file to write")
    parser.add_argument("--pods", type=int, default=1000, help="%(default)s")
    parser.add_argument("--decisions", type=int, default=25, help="after a first one; %(default)s")
    parser.add_argument(
        "--period-s",
        type=float,
        default=5.0,
        help="seconds from one decision to the next, as the operator's tick; %(default)s",
    )
    arguments = parser.parse_args()
    decisions = measure(arguments.pods, arguments.decisions, arguments.period_s)
    results.write(
        arguments.file,
        f"python -m tests.scale.push {' '.join(sys.argv[1:])}",
        {"aiohttp": version("aiohttp"), "cryptography": version("cryptography")},
        figures_of(arguments.pods, decisions[0], decisions[1:]),
    )
    return 0


def measure(pods: int, count: int, period_s: float) -> list[Decision]:
    """Start the listeners and push; the first decision is the warm-up."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if limit < pods + _SPARE_FILES:
        raise RuntimeError(f"{limit} open files are allowed, {pods + _SPARE_FILES} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    # In memory, like the pods' run directory.
    with tempfile.TemporaryDirectory(prefix="headway-push-", dir="/dev/shm") as name:
        directory = Path(name)
        sidecars = [listeners.settings_of(directory, number) for number in range(pods)]
        keys = make_keys(directory / "signing")
        for each in sidecars:
            write_config_map(each, keys)
        print(f"starting {pods} sidecars", flush=True)
        with listeners.running(directory, pods) as process:
            return asyncio.run(push_all(sidecars, keys, process.pid, count, period_s))


def make_keys(directory: Path) -> KeyRing:
    """A key ring with one new key."""
    directory.mkdir()
    pem = Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    (directory / CURRENT).write_bytes(pem)
    return KeyRing(directory)


def write_config_map(sidecar: Settings, keys: KeyRing) -> None:
    """A pod's directories, with the files that the operator's ConfigMap would bring."""
    sidecar.run_dir.mkdir(parents=True)
    sidecar.policy_dir.mkdir(parents=True)
    published = {key.key_id: base64.b64encode(key.raw).decode() for key in keys.public_keys()}
    (sidecar.policy_dir / KEYS_FILE).write_text(json.dumps({"keys": published}))
    (sidecar.policy_dir / BASELINE_FILE).write_bytes(encode(policy_numbered(0)))


def policy_numbered(number: int) -> Policy:
    """The policy of a decision; 0 is the baseline."""
    return Policy(
        scope=Scope(listeners.SERVICE_UID),
        stamp=Stamp(generation=1, epoch=EPOCH if number else 0, counter=number),
        max_batch_size=256,
        token_budget=2048 + number,
        classes=_CLASSES,
        default_class="chat",
    )


async def push_all(
    sidecars: Sequence[Settings], keys: KeyRing, listeners_pid: int, count: int, period_s: float
) -> list[Decision]:
    """One decision after the other."""
    client, clock = SidecarClient(), AcknowledgementClock()
    pusher = PolicyPusher(client, keys, Leader(), clock)
    pods = [pod_record(number, each) for number, each in enumerate(sidecars)]
    decisions = []
    for number in range(1, count + 2):
        policy, due = policy_numbered(number), time.monotonic() + period_s
        clock.acknowledged_at.clear()
        cpu_s = (time.process_time(), cpu_seconds(listeners_pid))
        decided_at = time.perf_counter()
        await pusher.push(policy, pods)
        acknowledged_at = {pod.uid: clock.acknowledged_at.get(pod.uid, math.inf) for pod in pods}
        decision = Decision(
            [(at - decided_at) * 1000 for at in acknowledged_at.values()],
            sum(holds(each, policy) for each in sidecars),
            time.process_time() - cpu_s[0],
            cpu_seconds(listeners_pid) - cpu_s[1],
        )
        print(f"decision {number}: {in_words(decision)}", flush=True)
        decisions.append(decision)
        await asyncio.sleep(max(0.0, due - time.monotonic()))
    await client.close()
    return decisions


def pod_record(number: int, sidecar: Settings) -> PodRecord:
    """A pod as the operator knows it: its sidecar runs."""
    container = ContainerRecord(SIDECAR, "runtime", started=True, ready=True, restarts=0)
    return PodRecord(
        namespace="scale",
        name=f"pod-{number}",
        uid=sidecar.pod_uid,
        resource_version=1,
        template="",
        ip=sidecar.address,
        phase="Running",
        deleting=False,
        ready=True,
        scheduled=None,
        prepared=None,
        containers={SIDECAR: container},
    )


def holds(sidecar: Settings, policy: Policy) -> bool:
    """Whether the file that a pod's engine reads holds this policy."""
    try:
        return decode(policy_file.read(sidecar.run_dir / policy_file.FILE_NAME)) == policy
    except (OSError, policy_file.PolicyFileError):
        return False


def in_words(decision: Decision) -> str:
    """One line of progress."""
    p50, p99 = (milliseconds(decision.delays_ms, share) for share in (0.5, 0.99))
    return (
        f"p50 {p50} ms, p99 {p99} ms, {decision.missing} not acknowledged, "
        f"{decision.verified} verified, CPU {decision.operator_cpu_s:.2f} s here and "
        f"{decision.sidecars_cpu_s:.2f} s in the sidecars"
    )


def milliseconds(delays_ms: Sequence[float], share: float) -> int | None:
    """A percentile in whole milliseconds."""
    found = results.percentile(delays_ms, share)
    return None if found is None else round(found)


def figures_of(pods: int, first: Decision, decisions: Sequence[Decision]) -> dict[str, Any]:
    """What goes into the results file."""
    delays_ms = [delay for each in decisions for delay in each.delays_ms]
    worst = max(decisions, key=lambda each: results.percentile(each.delays_ms, 0.99) or math.inf)
    count = len(decisions)
    return {
        "pods": pods,
        "decisions": count,
        "applied_p50_ms": milliseconds(delays_ms, 0.5),
        "applied_p99_ms": milliseconds(delays_ms, 0.99),
        "applied_max_ms": milliseconds(delays_ms, 1.0),
        "worst_decision_p99_ms": milliseconds(worst.delays_ms, 0.99),
        "first_decision_p99_ms": milliseconds(first.delays_ms, 0.99),
        "not_acknowledged": sum(each.missing for each in decisions),
        "policies_verified": sum(each.verified for each in decisions),
        "policies_sent": pods * count,
        "first_decision_not_acknowledged": first.missing,
        "operator_cpu_s_per_decision": round(sum(d.operator_cpu_s for d in decisions) / count, 3),
        "sidecars_cpu_s_per_decision": round(sum(d.sidecars_cpu_s for d in decisions) / count, 3),
    }


if __name__ == "__main__":
    sys.exit(main())
