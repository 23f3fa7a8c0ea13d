"""Imports vLLM once, whose own imports warn; skips these tests where there is none.

And makes engines for them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway_runtime.executors.vllm.adapter import Adapter
from headway_runtime.scheduling.plan import StepPlan

# Read when vLLM is imported: no usage statistics, no search for models on the network.
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

collect_ignore_glob: list[str] = []

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    try:
        from vllm.model_executor.models import registry

        from headway_runtime.executors.vllm import control, journal
        from headway_runtime.executors.vllm.plugin import HeadwayScheduler
        from tests.contract.engines import build_engine, engine_configuration, write_model
    except ModuleNotFoundError as missing:
        if missing.name not in ("vllm", "torch"):
            raise
        collect_ignore_glob.append("test_*.py")


@pytest.fixture(scope="session", autouse=True)
def _model_class_known() -> Iterator[None]:
    """VLLM looks into the model's class here: in another process it would first import itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_run_in_subprocess", lambda look: look())
        yield


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy this machine is, no plan is late unless a test says so; nothing is put off."""
    for name in ("PLAN_CPU_DEADLINE_NS", "PLAN_WALL_DEADLINE_NS"):
        monkeypatch.setattr(control, name, 10**15)
    monkeypatch.setattr(journal, "CLASSES_PERIOD_NS", 0)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[StepPlan]:
    """Every plan as it was put in force."""
    found: list[StepPlan] = []
    apply = Adapter.apply

    def kept(self: Adapter, plan: StepPlan) -> None:
        found.append(plan)
        apply(self, plan)

    monkeypatch.setattr(Adapter, "apply", kept)
    return found


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes engines; the policy is published before, as the sidecar does."""

    def make(
        published: Any = None,
        *,
        blocks: Any = 1000,
        prepare: Any = None,
        scheduler_class: Any = HeadwayScheduler,
        **scheduling: Any,
    ) -> Any:
        run_dir, model_dir = tmp_path / "run", tmp_path / "model"
        for directory in (run_dir, model_dir):
            directory.mkdir(exist_ok=True)
        monkeypatch.setenv("HEADWAY_RUN_DIR", str(run_dir))
        configuration = engine_configuration(write_model(model_dir), **scheduling)
        if prepare is not None:
            prepare(configuration)
        engine = build_engine(
            configuration, run_dir, blocks=blocks, scheduler_class=scheduler_class
        )
        if published is not None:
            engine.publish(published)
        return engine

    return make
