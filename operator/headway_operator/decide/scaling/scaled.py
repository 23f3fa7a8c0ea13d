"""What a decision on the number of pods comes to."""

from __future__ import annotations

from dataclasses import dataclass

from headway_operator.observe.idleness import Idleness
from headway_operator.observe.scaling import Scaling


@dataclass(frozen=True)
class Scaled:
    """What a tick came to.

    Attributes:
        replicas: pods to run.
        memory: what is remembered from now on; None where others decide.
        before: pods until now, if that is another number.
        message: why there are more or fewer; empty where there are not.
        wanted: pods without the user's bounds; None where nothing says how many.
        reason: of the event that tells of it; empty for what it is called by default.
        idleness: how long nobody has used the service; None where it always has pods.
        leaving: the last pods are to go, or have gone: requests are to come to the activator.
    """

    replicas: int
    memory: Scaling | None = None
    before: int | None = None
    message: str = ""
    wanted: int | None = None
    reason: str = ""
    idleness: Idleness | None = None
    leaving: bool = False
