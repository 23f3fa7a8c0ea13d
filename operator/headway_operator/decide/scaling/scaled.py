"""What a decision on the number of pods comes to."""

from __future__ import annotations

from dataclasses import dataclass

from headway_operator.memory.idleness import Idleness
from headway_operator.memory.scaling import Scaling


@dataclass(frozen=True)
class GpuShare:
    """What a service that gets fewer pods than it needs has.

    Attributes:
        quota: GPUs that all services may use together.
        gpus: that it gets.
        others: that the other services have.
    """

    quota: int
    gpus: int
    others: int

    def __str__(self) -> str:
        return (
            f"it gets {self.gpus} of the {self.quota} GPUs that services may use together "
            f"(gpuQuota), the others have {self.others}"
        )


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
        limited: what the service gets of the GPUs that all share, where that is fewer pods than it
            needs.
    """

    replicas: int
    memory: Scaling | None = None
    before: int | None = None
    message: str = ""
    wanted: int | None = None
    reason: str = ""
    idleness: Idleness | None = None
    leaving: bool = False
    limited: GpuShare | None = None
