"""The degradation ladder. Pure: what is short, and the steps in force -> the steps from now on.

shortages -> for how long -> a step further down, one back, or none -> steps in force

Steps in force stand in the status and nowhere else: what they do is read from there in the next
tick, so that no step has an effect which the next operator would not know of.
"""

from headway_operator.decide.degradation.condition import degraded
from headway_operator.decide.degradation.deciding import Degradation, decide_degradation
from headway_operator.decide.degradation.effects import held_back, least_of, replaces_in_place
from headway_operator.decide.degradation.ladder import standing_steps

__all__ = [
    "Degradation",
    "decide_degradation",
    "degraded",
    "held_back",
    "least_of",
    "replaces_in_place",
    "standing_steps",
]
