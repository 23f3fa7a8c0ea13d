"""How busy the GPU is during a run, sampled through NVML where there is one.

With several GPUs it is the first that ``CUDA_VISIBLE_DEVICES`` names.
"""

from __future__ import annotations

import importlib
import os
import threading
from types import TracebackType
from typing import Any, Self

_PERIOD_S = 0.25


class GpuUse:
    """Samples a GPU while its context lasts.

    Attributes:
        percent: share of time in which any kernel ran, one entry a sample; empty without NVML.
        gpu: the GPU's name, None without NVML.
    """

    def __init__(self) -> None:
        self.percent: list[int] = []
        self.gpu: str | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        """Start."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        self._stop.set()
        self._thread.join()

    @property
    def mean_percent(self) -> float | None:
        """Mean of all samples, None without any."""
        return round(sum(self.percent) / len(self.percent), 1) if self.percent else None

    def _sample(self) -> None:
        nvml = _nvml()
        if nvml is None:
            return
        try:
            device = nvml.nvmlDeviceGetHandleByIndex(_index())
            self.gpu = str(nvml.nvmlDeviceGetName(device))
            while not self._stop.wait(_PERIOD_S):
                self.percent.append(int(nvml.nvmlDeviceGetUtilizationRates(device).gpu))
        except nvml.NVMLError:
            # A run is worth as much without it.
            return


def _index() -> int:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0]
    return int(visible) if visible.isdecimal() else 0


def _nvml() -> Any:
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
    except Exception:  # noqa: BLE001 - no module, no driver, no GPU: all the same here
        return None
    return nvml
