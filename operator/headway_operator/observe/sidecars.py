"""What the sidecars said last: which policy they hold and how their engines do."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headway_operator.observe.quarantine import BadRequests, bad_requests
from headway_runtime.policy import Stamp

_MAX_ENGINES = 64
_MAX_STAMP_CHARACTERS = 64
_STAMP_PARTS = 3
_MAX_CLASSES = 32
_MAX_COUNT = 2**31


class Outcome(enum.StrEnum):
    """How a policy was received; all but the last two are the sidecar's own words."""

    APPLIED = "Applied"
    ALREADY_APPLIED = "AlreadyApplied"
    BAD_FORMAT = "BadFormat"
    BAD_SIGNATURE = "BadSignature"
    UNKNOWN_KEY = "UnknownKey"
    WRONG_SCOPE = "WrongScope"
    OUTDATED = "Outdated"
    UNREACHABLE = "Unreachable"
    """No answer in time."""
    UNEXPECTED = "Unexpected"
    """An answer that no sidecar gives."""


ACCEPTED = frozenset({Outcome.APPLIED, Outcome.ALREADY_APPLIED})


@dataclass(frozen=True)
class HeldPoint:
    """The retuned part of a policy that a pod holds; None where the policy says nothing.

    Attributes:
        theta_ppm: switching threshold, parts per million.
        token_budget: tokens in one step.
        max_batch_size: requests running at once.
        class_limits: requests of a class running at once, by class.
    """

    theta_ppm: int | None = None
    token_budget: int | None = None
    max_batch_size: int | None = None
    class_limits: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class SidecarReport:
    """What is known of one pod's sidecar.

    Attributes:
        stamp: the policy it holds; None before it told.
        refusal: why it does not hold the policy last sent; None when it does.
        stock_reason: why its engine schedules as vLLM does; None when Headway schedules.
        held: what the policy it held when it was last asked says; None before it told.
        asked: it was asked at least once, whether or not it answered.
        bad: requests that broke its engine or the plug-in.
    """

    stamp: Stamp | None = None
    refusal: Outcome | None = None
    stock_reason: str | None = None
    held: HeldPoint | None = None
    asked: bool = False
    bad: BadRequests = field(default_factory=BadRequests)


class Sidecars:
    """Reports by pod uid, kept between reconciliations."""

    def __init__(self) -> None:
        self._reports: dict[str, SidecarReport] = {}

    def report(self, pod_uid: str) -> SidecarReport:
        """What is known of a pod's sidecar; nothing at first."""
        return self._reports.get(pod_uid, SidecarReport())

    def pushed(self, pod_uid: str, outcome: Outcome, stamp: Stamp | None) -> bool:
        """Note the answer to a pushed policy; the stamp is the one the sidecar now holds.

        Returns whether that is news. A sidecar that refuses in ever new words tells none: whoever
        hears of news looks at the service at once, and would do nothing else.
        """
        old = self.report(pod_uid)
        refusal = None if outcome in ACCEPTED else outcome
        new = replace(old, stamp=stamp or old.stamp, refusal=refusal)
        self._reports[pod_uid] = new
        return new != old and (refusal is None or old.refusal is None)

    def polled(self, pod_uid: str, status: Mapping[str, Any]) -> bool:
        """Note an answer to ``GET /v1/status``. Returns whether it tells anything new."""
        old = self.report(pod_uid)
        stamp = _stamp(status)
        refusal = None if stamp != old.stamp else old.refusal
        new = SidecarReport(
            stamp,
            refusal,
            _stock_reason(status),
            _held(status),
            asked=True,
            bad=bad_requests(status),
        )
        self._reports[pod_uid] = new
        return _told(new) != _told(old)

    def silent(self, pod_uid: str) -> bool:
        """Note that a pod did not answer. Returns whether it was asked for the first time."""
        old = self.report(pod_uid)
        self._reports[pod_uid] = replace(old, asked=True)
        return not old.asked

    def keep_only(self, pod_uids: Iterable[str]) -> None:
        """Forget every pod but these."""
        kept = set(pod_uids)
        self._reports = {uid: each for uid, each in self._reports.items() if uid in kept}


def parse_stamp(text: Any) -> Stamp | None:
    """Read ``generation.epoch.counter``; None for anything else."""
    parts = text.split(".") if isinstance(text, str) and len(text) <= _MAX_STAMP_CHARACTERS else []
    if len(parts) != _STAMP_PARTS:
        return None
    if not all(part.isascii() and part.isdigit() for part in parts):
        return None
    return Stamp(*(int(part) for part in parts))


def _stamp(status: Mapping[str, Any]) -> Stamp | None:
    policy = status.get("policy")
    return parse_stamp(policy.get("stamp")) if isinstance(policy, dict) else None


def _told(report: SidecarReport) -> SidecarReport:
    """A report without what we told the pod ourselves."""
    return replace(report, held=None)


def _held(status: Mapping[str, Any]) -> HeldPoint | None:
    policy = status.get("policy")
    if not isinstance(policy, dict):
        return None
    limits = policy.get("classLimits")
    pairs = sorted(limits.items()) if isinstance(limits, dict) else []
    return HeldPoint(
        theta_ppm=_count(policy.get("thetaPpm"), minimum=0),
        token_budget=_count(policy.get("tokenBudget")),
        max_batch_size=_count(policy.get("maxBatchSize")),
        class_limits=tuple(
            (name, limit) for name, each in pairs[:_MAX_CLASSES] if (limit := _count(each))
        ),
    )


def _count(value: Any, minimum: int = 1) -> int | None:
    """A number that a policy could hold; None for anything else a pod may have written."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if minimum <= value <= _MAX_COUNT else None


def _stock_reason(status: Mapping[str, Any]) -> str | None:
    engines = status.get("engines")
    if not isinstance(engines, list):
        return None
    for engine in engines[:_MAX_ENGINES]:
        if isinstance(engine, dict) and engine.get("state") == "Stock":
            return str(engine.get("stockReason") or "Unknown")
    return None
