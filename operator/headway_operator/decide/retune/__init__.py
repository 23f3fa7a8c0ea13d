"""The operating point of running engines, looked at every 5 s. Pure, like every decision."""

from headway_operator.decide.retune.background import limit_background
from headway_operator.decide.retune.bounds import Bounds, clamp
from headway_operator.decide.retune.change import Change, Reason, What
from headway_operator.decide.retune.retuning import Retuned, retune
from headway_operator.decide.retune.targets import ClassTargets

__all__ = [
    "Bounds",
    "Change",
    "ClassTargets",
    "Reason",
    "Retuned",
    "What",
    "clamp",
    "limit_background",
    "retune",
]
