"""How many pods a service gets. Pure: what is asked of its engines -> replicas with a reason."""

from headway_operator.decide.scaling.scaling import Scaled, decide_scaling

__all__ = ["Scaled", "decide_scaling"]
