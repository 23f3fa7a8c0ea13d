"""Sampling of GPUs."""

from __future__ import annotations

import ast
import inspect
from types import SimpleNamespace
from typing import Any

import pytest

from headway_runtime.executors.vllm import gpu_utilisation
from headway_runtime.executors.vllm.gpu_utilisation import PERIOD_NS, GpuSample, GpuUtilisation


class Nvml:
    """NVIDIA's library with GPUs of these utilisations, in percent."""

    def __init__(self, *rates: tuple[int, int], fails: str = "") -> None:
        self.rates = rates
        self.fails = fails
        self.looks = 0

    def nvmlInit(self) -> None:  # noqa: N802 - NVIDIA's name
        self._fail("init")

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.rates)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        self._fail("handle")
        if index >= len(self.rates):
            raise LookupError
        return index

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> int:  # noqa: N802
        return ["GPU-a", "GPU-b", "GPU-c"].index(uuid)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:  # noqa: N802
        self.looks += 1
        self._fail("look")
        return SimpleNamespace(gpu=self.rates[handle][0], memory=self.rates[handle][1])

    def _fail(self, where: str) -> None:
        if self.fails == where:
            raise RuntimeError(where)


def gpus(nvml: Any, visible: str | None = None) -> GpuUtilisation:
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    return GpuUtilisation(environment, lambda: nvml)


NOTHING = GpuSample()


def test_a_sample_is_the_mean_over_all_gpus() -> None:
    sample = gpus(Nvml((50, 10), (100, 20))).sample(1, 77)
    assert sample == GpuSample(750_000, 150_000, 77)


@pytest.mark.parametrize(
    ("visible", "utilisation"),
    [
        (None, 200_000),
        ("0", 100_000),
        ("2,1", 250_000),
        (" 1 , 2 ", 250_000),
        ("GPU-b", 200_000),
        ("GPU-a,GPU-c", 200_000),
    ],
)
def test_only_the_gpus_this_process_sees_count(visible: str | None, utilisation: int) -> None:
    nvml = Nvml((10, 0), (20, 0), (30, 0))
    assert gpus(nvml, visible).sample(1, 1).utilisation_ppm == utilisation


NO_WHOLE_GPUS = ("", "-1", "MIG-a", "0,MIG-a", "GPU-unknown", "7", "NoDevFiles")


@pytest.mark.parametrize("visible", NO_WHOLE_GPUS)
def test_whatever_is_no_whole_gpu_gives_no_samples(visible: str) -> None:
    nvml = Nvml((10, 0))
    assert gpus(nvml, visible).sample(1, 1) == NOTHING
    assert nvml.looks == 0


def test_no_gpus_give_no_samples() -> None:
    assert gpus(Nvml()).sample(1, 1) == NOTHING


@pytest.mark.parametrize("where", ["init", "handle"])
def test_an_error_at_the_start_is_no_error_of_the_engine(where: str) -> None:
    assert gpus(Nvml((10, 0), fails=where)).sample(1, 1) == NOTHING


def test_without_the_library_there_are_no_samples() -> None:
    def missing() -> Any:
        raise ImportError

    assert GpuUtilisation({}, missing).sample(1, 1) == NOTHING


def test_it_looks_once_a_second_at_most() -> None:
    nvml = Nvml((10, 0))
    sampled = gpus(nvml)
    first = sampled.sample(5, 1)
    assert sampled.sample(5 + PERIOD_NS - 1, 2) is first
    assert sampled.sample(5 + PERIOD_NS, 3).sampled_ns == 3
    assert nvml.looks == 2


def test_after_an_error_it_never_looks_again_and_forgets_what_it_saw() -> None:
    nvml = Nvml((10, 0))
    sampled = gpus(nvml)
    sampled.sample(1, 1)
    nvml.fails = "look"
    assert sampled.sample(1 + PERIOD_NS, 2) == NOTHING
    nvml.fails = ""
    assert sampled.sample(1 + 9 * PERIOD_NS, 3) == NOTHING
    assert nvml.looks == 2


def test_it_never_imports_torch() -> None:
    names = [
        name
        for node in ast.walk(ast.parse(inspect.getsource(gpu_utilisation)))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", None), *(alias.name for alias in node.names)]
    ]
    assert not [name for name in names if name and name.startswith("torch")]
