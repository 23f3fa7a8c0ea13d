"""When an engine will be free: what is under way, timed from outside.

An engine with asynchronous scheduling launches step k+1 while step k runs, and looks at k only
after that. Whoever times it from outside sees three moments of each step: when it was decided, when
its launch was over, and when its output was looked at. The last is the end of the step only if the
engine had to wait for it; where launching took longer than the step, the end was not seen.

An engine that does not schedule ahead does one after the other: a step lasts from its decision to
the look at its output, with its launch.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from headway_runtime.scheduling.timing.step_shape import StepShape
from headway_runtime.scheduling.timing.step_time_model import StepTimeModel

_GROWTH = 1.005
"""The least delay from the end of a launch to the look at the step before is forgotten slowly."""
_MOST_DELAY_S = 0.002
"""It is never thought to be more: taking an output that is there already takes no longer, while an
engine whose launches are always short shows nothing but steps that it waited for."""
_SEEN_FACTOR = 1.5
_SEEN_MARGIN_S = 0.0005
_LAUNCH_WEIGHT = 0.05
_FIRST_LAUNCH_S = {"decode": 0.003, "graph": 0.01, "eager": 0.03}


@dataclass
class _Step:
    shape: StepShape
    predicted_s: float
    decided_s: float
    launch: str
    behind_another: bool
    launched_s: float | None = None


class EngineClock:
    """Times the steps of one engine and learns how long they take. Times are of any one clock.

    Args:
        step_time: what it teaches and asks.
        graph_tokens: largest step that runs as a CUDA graph; 0 where there are none.
        schedules_ahead: the next step is launched while one runs.
    """

    def __init__(
        self, step_time: StepTimeModel, graph_tokens: int = 0, *, schedules_ahead: bool = True
    ) -> None:
        self.step_time = step_time
        self.graph_tokens = graph_tokens
        self._schedules_ahead = schedules_ahead
        self._under_way: deque[_Step] = deque()
        self._ended_s = 0.0
        self._least_delay_s = _MOST_DELAY_S
        self._launch_s = dict(_FIRST_LAUNCH_S)
        self.error_ratio: float | None = None
        """How far off the last prediction was that could be checked, as a share of the truth."""

    @property
    def decode_launch_s(self) -> float:
        """Time it takes to launch a step that only decodes. 0 where it is a part of the step."""
        return self._launch_s["decode"] if self._schedules_ahead else 0.0

    @property
    def graph_launch_s(self) -> float:
        """Time it takes to launch a step with prefill that is not larger than the largest graph.

        0 where it is a part of the step.
        """
        return self._launch_s["graph"] if self._schedules_ahead else 0.0

    @property
    def eager_launch_s(self) -> float:
        """Time it takes to launch a step that is larger than the largest CUDA graph.

        0 where it is a part of the step.
        """
        return self._launch_s["eager"] if self._schedules_ahead else 0.0

    def decided(self, at_s: float, shape: StepShape) -> None:
        """A step was decided at this time; its launch begins."""
        self._under_way.append(
            _Step(
                shape,
                self.step_time.seconds(shape),
                at_s,
                launch=self._kind_of_launch(shape),
                behind_another=bool(self._under_way),
            )
        )

    def launched(self, at_s: float) -> None:
        """The launch of the step decided last is over."""
        step = self._under_way[-1] if self._under_way else None
        if step is not None and step.launched_s is None:
            step.launched_s = at_s

    def looked_at(self, at_s: float) -> None:
        """The output of the oldest step under way is looked at."""
        if not self._under_way:
            return
        step = self._under_way.popleft()
        if not self._schedules_ahead:
            self._learn(step, at_s - step.decided_s)
            self._ended_s = at_s
            return
        following = self._under_way[0] if self._under_way else None
        began_s = max(self._ended_s, step.decided_s)
        if self._was_waited_for(following, at_s):
            if step.behind_another:
                self._learn(step, at_s - began_s)
            self._ended_s = at_s
        else:
            if step.behind_another and began_s + step.predicted_s > at_s:
                # It has ended, so it hardly takes that long: steps run one after the other.
                self.step_time.learn_bound(step.shape, at_s - began_s)
            self._ended_s = min(at_s, began_s + step.predicted_s)
        self._learn_launch(step)

    def abandoned(self) -> None:
        """The step decided last holds nothing and will not be looked at."""
        if self._under_way:
            self._under_way.pop()

    def free_s(self, now_s: float) -> float:
        """When all steps under way will be done; now, if there are none."""
        free_s = self._ended_s
        for step in self._under_way:
            free_s = max(free_s, step.decided_s) + step.predicted_s
            if step.launched_s is not None:
                free_s = max(free_s, step.launched_s)
        return max(now_s, free_s)

    def _was_waited_for(self, following: _Step | None, at_s: float) -> bool:
        if following is None or following.launched_s is None:
            return True
        delay_s = at_s - following.launched_s
        self._least_delay_s = min(self._least_delay_s * _GROWTH, delay_s, _MOST_DELAY_S)
        return delay_s > _SEEN_FACTOR * self._least_delay_s + _SEEN_MARGIN_S

    def _learn(self, step: _Step, seconds: float) -> None:
        if seconds > 0:
            self.error_ratio = abs(step.predicted_s - seconds) / seconds
            self.step_time.learn(step.shape, seconds)

    def _kind_of_launch(self, shape: StepShape) -> str:
        if shape.tokens > self.graph_tokens:
            return "eager"
        return "graph" if shape.prefill_tokens else "decode"

    def _learn_launch(self, step: _Step) -> None:
        if step.launched_s is None:
            return
        took_s = step.launched_s - step.decided_s + self._least_delay_s
        known_s = self._launch_s[step.launch]
        self._launch_s[step.launch] = known_s + _LAUNCH_WEIGHT * (took_s - known_s)
