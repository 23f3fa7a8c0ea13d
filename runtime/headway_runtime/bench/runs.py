"""Which runs are made, in which order. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from headway_runtime.bench.arms import Arm
from headway_runtime.bench.scenarios import Scenario
from headway_runtime.bench.workload import generator


@dataclass(frozen=True)
class Group:
    """Runs of every scenario under every arm with every seed.

    Attributes:
        scenarios: the scenarios.
        arms: the arms.
        seeds: the seeds.
        control: an arm that is run a second time with each scenario and seed, None for none: what
            its two runs differ by is noise.
    """

    scenarios: tuple[Scenario, ...]
    arms: tuple[Arm, ...]
    seeds: tuple[int, ...]
    control: Arm | None = None


@dataclass(frozen=True)
class Run:
    """One arm under one scenario with one seed.

    Attributes:
        shape: shape of the engine's model.
        scenario: the scenario.
        seed: the seed.
        arm: the arm.
        is_control: whether it repeats another run.
    """

    shape: str
    scenario: Scenario
    seed: int
    arm: Arm
    is_control: bool = False

    @property
    def name(self) -> str:
        """Unique, and fit for a file's name."""
        control = ".control" if self.is_control else ""
        return f"{self.shape}.{self.scenario.name}.s{self.seed}.{self.arm.name}{control}"


def interleaved(group: Group, shape: str) -> list[Run]:
    """Runs of a group, seed after seed, so that stopping early costs seeds and no scenarios.

    Within a scenario and seed the arms follow each other, in an order of its own, and the control
    comes last: what drifts with time then hits all arms alike.
    """
    runs = []
    for seed in group.seeds:
        for scenario in group.scenarios:
            arms = list(group.arms)
            generator(scenario.name, seed).shuffle(arms)
            runs += [Run(shape, scenario, seed, arm) for arm in arms]
            if group.control is not None:
                runs.append(Run(shape, scenario, seed, group.control, is_control=True))
    return runs


def pending(
    groups: Sequence[Group], shape: str, done: Collection[str], kv_blocks: int | None
) -> list[Run]:
    """Runs that are left to make on one engine, each once.

    Args:
        groups: what is wanted.
        shape: shape of the engine's model.
        done: names of runs that need not be made.
        kv_blocks: KV blocks the engine was started with; scenarios made for another number are
            left out.
    """
    runs = {run.name: run for group in groups for run in interleaved(group, shape)}
    return [
        run for run in runs.values() if run.name not in done and run.scenario.kv_blocks == kv_blocks
    ]
