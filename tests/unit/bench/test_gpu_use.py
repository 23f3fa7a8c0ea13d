"""Which GPU is watched."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from headway_runtime.bench.gpu_use import GpuUse


@pytest.mark.parametrize(("visible", "index"), [(None, 0), ("1", 1), ("3,1", 3), ("GPU-abc", 0)])
def test_the_gpu_that_the_engine_was_given_is_watched(
    visible: str | None, index: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    nvml = ModuleType("pynvml")
    driver = {
        "nvmlInit": lambda: None,
        "NVMLError": RuntimeError,
        "nvmlDeviceGetHandleByIndex": lambda asked: asked,
        "nvmlDeviceGetName": lambda device: f"GPU {device}",
        "nvmlDeviceGetUtilizationRates": lambda _: SimpleNamespace(gpu=50),
    }
    for name, value in driver.items():
        setattr(nvml, name, value)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    with GpuUse() as watched:
        pass
    assert watched.gpu == f"GPU {index}"
