"""The policy document: what the operator tells running engines.

It is the only module that both sides import. A policy travels as a :class:`SignedPolicy`: the
canonical JSON of a :class:`Policy` and an Ed25519 signature over exactly those bytes. This module
knows the document and its encoding; it neither signs nor verifies, because the engine process that
also reads it has nothing but the standard library.
"""

from __future__ import annotations

import base64
import binascii
import enum
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FORMAT_VERSION = 1
"""Version written by this release. Readers accept this one and the two before it."""

OLDEST_READABLE_VERSION = max(1, FORMAT_VERSION - 2)

MAX_PAYLOAD_BYTES = 64 * 1024
"""Bound on an encoded policy; 32 classes need about 4 KiB."""

MAX_CLASSES = 32
MAX_THETA_PPM = 1_000_000
MAX_INTEGER = 2**53 - 1
"""Largest integer every JSON reader keeps exact."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")


class PolicyFormatError(ValueError):
    """A policy document that cannot be read. The message names the field and what it must be."""


class Mode(str, enum.Enum):
    """How much of the plan the engine carries out."""

    ACT = "Act"
    """The plan decides what the engine runs."""
    SHADOW = "Shadow"
    """The plan is made and recorded; the engine runs its stock decision."""
    OFF = "Off"
    """No plan is made."""


class WhenUnmet(str, enum.Enum):
    """What becomes of a request whose class's objectives cannot be kept when it comes."""

    QUEUE = "Queue"
    """It waits, behind those whose objectives can be kept."""
    SHED = "Shed"
    """It is refused at once, with a time after which to try again."""


@dataclass(frozen=True, order=True)
class Stamp:
    """Total order of policies; the highest one wins, so an old policy can never be replayed.

    Attributes:
        generation: ``metadata.generation`` of the spec the policy was decided from.
        epoch: leadership term of the operator that decided it (its Lease's transitions). Two
            operators during an upgrade are told apart by it. 0 is the baseline in the ConfigMap.
        counter: decisions within that term.
    """

    generation: int
    epoch: int
    counter: int

    def __str__(self) -> str:
        return f"{self.generation}.{self.epoch}.{self.counter}"


@dataclass(frozen=True)
class Scope:
    """Whom a policy is for. A pod refuses what is addressed to another service or another pod.

    Attributes:
        service_uid: uid of the InferenceService.
        pod_uid: uid of one pod, or None for every pod of the service.
    """

    service_uid: str
    pod_uid: str | None = None

    def covers(self, service_uid: str, pod_uid: str) -> bool:
        """Whether a pod of this service is addressed."""
        return self.service_uid == service_uid and self.pod_uid in (None, pod_uid)


@dataclass(frozen=True)
class TrafficClass:
    """A class of requests and the objective its requests are ordered by.

    Attributes:
        name: what a request names in ``vllm_xargs.headway_class``.
        ttft_ms: time to first token promised, in milliseconds; None promises none.
        tpot_ms: mean time per output token after the first promised, in milliseconds; None promises
            none.
        deadline_s: time to the last token promised, in seconds; None promises none.
        max_running: most requests of the class running at once; None limits it by the batch alone.
        weight: a token of the class counts so many times less against its tenant's share.
        when_unmet: what becomes of a request whose objectives cannot be kept.
        max_queued: most requests of the class waiting in an engine, others are refused; None does
            not limit them.
    """

    name: str
    ttft_ms: int | None = None
    tpot_ms: int | None = None
    deadline_s: int | None = None
    max_running: int | None = None
    weight: int = 1
    when_unmet: WhenUnmet = WhenUnmet.QUEUE
    max_queued: int | None = None


@dataclass(frozen=True)
class Tenant:
    """Somebody who shares the engines with others.

    Attributes:
        name: what metrics and headers call it.
        weight: its share, relative to those of the others.
        key_sha256: SHA-256 of the API key it is known by, in hexadecimal; None where only a trusted
            header names it.
    """

    name: str
    weight: int = 1
    key_sha256: str | None = None


@dataclass(frozen=True)
class PriorityCoefficients:
    """How work without a deadline is ranked, in percent; they add up to 100.

    Attributes:
        base: counts what its program was served so far: less is better.
        depth: counts how deep in its program it is.
        progress: counts how much of its program is left.
        learn: whether engines tune them to the programs they see.
    """

    base: int = 50
    depth: int = 30
    progress: int = 20
    learn: bool = False


@dataclass(frozen=True)
class Policy:
    """One decision about how an engine schedules, complete in itself.

    Attributes:
        scope: the pods it is for.
        stamp: its place in the order of decisions.
        mode: how much of the plan is carried out.
        max_batch_size: most requests running at once; None leaves the engine's ceiling.
        token_budget: most tokens one step may process; None leaves the engine's ceiling.
        theta_ppm: what switching to another request must gain at least, in parts per million; None
            while it is not known. Exported, and not used by the planner yet.
        classes: classes of traffic; names are unique.
        default_class: the class of a request that names none or an unknown one; None means it has
            no objective and runs after those that have.
        tenants: who shares the engines; whoever is none of them shares as one tenant.
        trust_headers: whether headers may name tenant, class and program.
        fairness_window: over so many scheduling decisions tenants get their shares.
        priority: how work without a deadline is ranked.
    """

    scope: Scope
    stamp: Stamp
    mode: Mode = Mode.ACT
    max_batch_size: int | None = None
    token_budget: int | None = None
    theta_ppm: int | None = None
    classes: tuple[TrafficClass, ...] = ()
    default_class: str | None = None
    tenants: tuple[Tenant, ...] = ()
    trust_headers: bool = False
    fairness_window: int = 100
    priority: PriorityCoefficients = PriorityCoefficients()


@dataclass(frozen=True)
class SignedPolicy:
    """A policy as it travels.

    Attributes:
        payload: the bytes that were signed, see :func:`encode`.
        signature: Ed25519 signature over ``payload``, 64 bytes.
        key_id: which of the published public keys verifies it.
    """

    payload: bytes
    signature: bytes
    key_id: str

    def to_json(self) -> bytes:
        """The envelope as a JSON object with base64 fields."""
        envelope = {
            "payload": base64.b64encode(self.payload).decode("ascii"),
            "signature": base64.b64encode(self.signature).decode("ascii"),
            "keyId": self.key_id,
        }
        return json.dumps(envelope, sort_keys=True).encode("ascii")

    @classmethod
    def from_json(cls, text: bytes) -> SignedPolicy:
        """Read an envelope.

        Raises:
            PolicyFormatError: it is no JSON object of these three fields, or it is too large.
        """
        if len(text) > 2 * MAX_PAYLOAD_BYTES:
            raise PolicyFormatError(f"envelope: {len(text)} bytes, at most {2 * MAX_PAYLOAD_BYTES}")
        fields = _Fields("envelope", _parse_object("envelope", text))
        signed = cls(
            payload=fields.base64("payload"),
            signature=fields.base64("signature"),
            key_id=fields.text("keyId", _KEY_ID),
        )
        fields.refuse_unknown()
        return signed


def encode(policy: Policy) -> bytes:
    """Canonical JSON of a policy: equal policies give equal bytes."""
    document = {
        "version": FORMAT_VERSION,
        "serviceUid": policy.scope.service_uid,
        "podUid": policy.scope.pod_uid,
        "generation": policy.stamp.generation,
        "epoch": policy.stamp.epoch,
        "counter": policy.stamp.counter,
        "mode": policy.mode.value,
        "maxBatchSize": policy.max_batch_size,
        "tokenBudget": policy.token_budget,
        "thetaPpm": policy.theta_ppm,
        "classes": [_encode_class(each) for each in policy.classes],
        "defaultClass": policy.default_class,
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode("ascii")


def _encode_class(traffic_class: TrafficClass) -> dict[str, Any]:
    return {
        "name": traffic_class.name,
        "ttftMs": traffic_class.ttft_ms,
        "tpotMs": traffic_class.tpot_ms,
        "deadlineS": traffic_class.deadline_s,
        "maxRunning": traffic_class.max_running,
    }


def decode(payload: bytes) -> Policy:
    """Read a policy document, checking every field.

    Raises:
        PolicyFormatError: too large, not JSON, a version this release cannot read, a missing,
            unknown or out-of-range field. The message names it.
    """
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise PolicyFormatError(f"policy: {len(payload)} bytes, at most {MAX_PAYLOAD_BYTES}")
    fields = _Fields("policy", _parse_object("policy", payload))
    version = fields.integer("version", minimum=1)
    if not OLDEST_READABLE_VERSION <= version <= FORMAT_VERSION:
        raise PolicyFormatError(
            f"policy.version: {version} is not readable here, "
            f"only {OLDEST_READABLE_VERSION} to {FORMAT_VERSION}"
        )
    policy = Policy(
        scope=Scope(fields.text("serviceUid", _UID), fields.optional_text("podUid", _UID)),
        stamp=Stamp(
            generation=fields.integer("generation", minimum=0),
            epoch=fields.integer("epoch", minimum=0),
            counter=fields.integer("counter", minimum=0),
        ),
        mode=fields.mode("mode"),
        max_batch_size=fields.optional_integer("maxBatchSize", minimum=1),
        token_budget=fields.optional_integer("tokenBudget", minimum=1),
        classes=_decode_classes(fields.take("classes")),
        default_class=fields.optional_text("defaultClass", _NAME),
        theta_ppm=fields.optional_integer("thetaPpm", minimum=0, maximum=MAX_THETA_PPM),
    )
    fields.refuse_unknown()
    if policy.default_class is not None and policy.default_class not in {
        c.name for c in policy.classes
    }:
        raise PolicyFormatError(
            f"policy.defaultClass: {policy.default_class!r} is none of policy.classes"
        )
    return policy


_UID = re.compile(r"[-A-Za-z0-9]{1,64}\Z")
_KEY_ID = re.compile(r"[-A-Za-z0-9_]{1,64}\Z")


def _decode_classes(value: Any) -> tuple[TrafficClass, ...]:
    if not isinstance(value, list) or len(value) > MAX_CLASSES:
        raise PolicyFormatError(f"policy.classes: must be a list of at most {MAX_CLASSES}")
    classes = tuple(_decode_class(f"policy.classes[{i}]", item) for i, item in enumerate(value))
    if len({each.name for each in classes}) != len(classes):
        raise PolicyFormatError("policy.classes: names must be unique")
    return classes


def _decode_class(where: str, value: Any) -> TrafficClass:
    if not isinstance(value, dict):
        raise PolicyFormatError(f"{where}: must be an object")
    fields = _Fields(where, value)
    decoded = TrafficClass(
        name=fields.text("name", _NAME),
        ttft_ms=fields.optional_integer("ttftMs", minimum=1),
        tpot_ms=fields.optional_integer("tpotMs", minimum=1),
        deadline_s=fields.optional_integer("deadlineS", minimum=1),
        max_running=fields.optional_integer("maxRunning", minimum=1),
    )
    fields.refuse_unknown()
    return decoded


def _parse_object(where: str, text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        # The text itself is not repeated: it may be anything a stranger sent.
        raise PolicyFormatError(f"{where}: is not JSON") from None
    if not isinstance(value, dict):
        raise PolicyFormatError(f"{where}: must be an object")
    return value


class _Fields:
    """Takes fields out of a JSON object one by one, so that what is left over is unknown."""

    def __init__(self, where: str, values: Mapping[str, Any]) -> None:
        self._where = where
        self._values = dict(values)

    def take(self, name: str) -> Any:
        try:
            return self._values.pop(name)
        except KeyError:
            raise PolicyFormatError(f"{self._where}.{name}: is missing") from None

    def integer(self, name: str, *, minimum: int, maximum: int = MAX_INTEGER) -> int:
        value = self.take(name)
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
            raise PolicyFormatError(
                f"{self._where}.{name}: must be an integer from {minimum} to {maximum}"
            )
        return value

    def optional_integer(
        self, name: str, *, minimum: int, maximum: int = MAX_INTEGER
    ) -> int | None:
        if self._values.get(name, False) is None:
            del self._values[name]
            return None
        return self.integer(name, minimum=minimum, maximum=maximum)

    def text(self, name: str, pattern: re.Pattern[str]) -> str:
        value = self.take(name)
        if not isinstance(value, str) or not pattern.match(value):
            raise PolicyFormatError(
                f"{self._where}.{name}: must be a string like {pattern.pattern}"
            )
        return value

    def optional_text(self, name: str, pattern: re.Pattern[str]) -> str | None:
        if self._values.get(name, False) is None:
            del self._values[name]
            return None
        return self.text(name, pattern)

    def mode(self, name: str) -> Mode:
        value = self.take(name)
        try:
            return Mode(value)
        except ValueError:
            known = ", ".join(mode.value for mode in Mode)
            raise PolicyFormatError(f"{self._where}.{name}: must be one of {known}") from None

    def base64(self, name: str) -> bytes:
        value = self.take(name)
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise PolicyFormatError(f"{self._where}.{name}: must be base64") from None

    def refuse_unknown(self) -> None:
        if self._values:
            # Only the count: a field's name comes from the sender.
            raise PolicyFormatError(f"{self._where}: has {len(self._values)} unknown field(s)")
