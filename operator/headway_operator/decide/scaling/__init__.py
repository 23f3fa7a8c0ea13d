"""How many pods a service gets. Pure: what is asked of its engines -> replicas with a reason."""

from headway_operator.decide.scaling.decision import decide_scaling
from headway_operator.decide.scaling.quota import claim_of
from headway_operator.decide.scaling.scaled import Scaled
from headway_operator.decide.scaling.zero import (
    MOST_UNREACHED,
    NO_ACTIVATOR,
    UNATTENDED_SECONDS,
    is_cut_off,
)

__all__ = [
    "MOST_UNREACHED",
    "NO_ACTIVATOR",
    "UNATTENDED_SECONDS",
    "Scaled",
    "claim_of",
    "decide_scaling",
    "is_cut_off",
]
