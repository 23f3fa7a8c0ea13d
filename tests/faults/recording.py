"""What was recorded while a fault was there: plain data, from which its section is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

REFUSED = "connection refused"
_REFUSED_IN_A_MOMENT = 3


@dataclass(frozen=True)
class Sample:
    """One look at the cluster.

    Attributes:
        at_s: seconds since the recording began.
        answered: whether the API server did; everything else is then what it said.
        ready: pods of the service that are ready.
        pods: its pods, also those that are being stopped.
        restarts: of its engine containers, over all pods.
    """

    at_s: float
    answered: bool
    ready: int = 0
    pods: int = 0
    restarts: int = 0


@dataclass(frozen=True)
class Happening:
    """Something that was done or seen.

    Attributes:
        at_s: seconds since the recording began.
        kind: ``done`` (by the test), ``condition``, ``pod``, ``event`` or ``cluster``.
        text: what.
    """

    at_s: float
    kind: str
    text: str


@dataclass(frozen=True)
class Request:
    """One request of the light client.

    Attributes:
        offered_s: when it was sent, in seconds since the recording began.
        ended_s: when it was over.
        error: empty when it was answered in full, else what the client saw.
        first_token_s: when its first token had come, in seconds since the recording began; None if
            none came.
    """

    offered_s: float
    ended_s: float
    error: str = ""
    first_token_s: float | None = None


@dataclass
class Recording:
    """A fault from before it was caused until after it was over.

    Attributes:
        key: short name of the fault, as in the catalogue.
        title: what was wrong, in a few words.
        cause: how it was really caused.
        date: when, RFC 3339.
        samples: once a second.
        happenings: in order of time.
        requests: in the order in which they were offered.
        marks: moments in seconds: ``caused``, ``unlisted`` (a router knows), ``shown``, ``mended``,
            ``recovered``; some may lack.
        failure: what did not hold; empty if all did.
    """

    key: str
    title: str
    cause: str
    date: str
    samples: list[Sample] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    marks: dict[str, float] = field(default_factory=dict)
    failure: str = ""

    def to_json(self) -> dict[str, Any]:
        """As it is kept in a file; times to a tenth of a second."""
        return dict(_rounded(asdict(self)))

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Read back what ``to_json`` gave."""
        fields = dict(stored)
        fields["samples"] = [Sample(**each) for each in stored["samples"]]
        fields["happenings"] = [Happening(**each) for each in stored["happenings"]]
        fields["requests"] = [Request(**each) for each in stored["requests"]]
        return cls(**fields)

    def failed(self) -> list[str]:
        """What clients saw of the requests that were not answered in full."""
        return [each.error for each in self.requests if each.error]

    def failed_before_they_began(self) -> list[str]:
        """The same of those of which no token had come: another pod could have answered them."""
        return [each.error for each in self.requests if each.error and each.first_token_s is None]

    def lost(self) -> list[str]:
        """The same of those that a pod had taken, or that were refused for more than a moment.

        A pod that misses two probes while another engine starts on the same cores is out of
        service for a second or two: that is the machine's, and counted as failed in the report.
        """
        refused = len(self.failed()) - len(self.cut())
        return self.cut() if refused <= _REFUSED_IN_A_MOMENT else self.failed()

    def cut(self) -> list[str]:
        """The same of those that a pod had taken."""
        return [error for error in self.failed() if error != REFUSED]


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 1)
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value
