"""Steps that were launched and not looked at."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from headway_runtime.executors.simulated.step import Step
from headway_runtime.executors.simulated.step_time import Timing


@dataclass(frozen=True)
class Launched:
    """A step that was launched.

    Attributes:
        step: what it computes.
        scheduled_s: when it was decided.
        launched_s: when its launch was over.
        began_s: when the GPU began with it.
        ended_s: when the GPU is done with it.
        update_s: how long it takes to take in its output.
    """

    step: Step
    scheduled_s: float
    launched_s: float
    began_s: float
    ended_s: float
    update_s: float = 0.0


class Pipeline:
    """What is under way on the GPU.

    Its steps run one after the other. One cannot end before its launch is over: where launching
    takes longer than the work, the GPU waits for it.

    Args:
        timing: tells how long steps take, and how many are under way at most.
    """

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._steps: deque[Launched] = deque()
        self._free_s = 0.0

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def has_room(self) -> bool:
        """Whether another step may be launched."""
        return len(self._steps) < self._timing.steps_under_way

    def launch(self, step: Step, now_s: float) -> Launched:
        """Launch a step now."""
        gpu_s, launch_s, update_s = self._timing.of(step)
        began_s = max(self._free_s, now_s)
        launched_s = now_s + launch_s
        self._free_s = max(began_s + gpu_s, launched_s)
        launched = Launched(step, now_s, launched_s, began_s, self._free_s, update_s)
        self._steps.append(launched)
        return launched

    def oldest(self) -> Launched:
        """Take out the step that ends first.

        Raises:
            IndexError: none is under way.
        """
        return self._steps.popleft()
