"""How busy the engine's GPUs are, from NVIDIA's management library (NVML)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_LOGGER = logging.getLogger("vllm.headway")

PERIOD_NS = 10**9
_PPM_PER_PERCENT = 10_000


@dataclass(frozen=True)
class GpuSample:
    """What was sampled last.

    Attributes:
        utilisation_ppm: share of NVML's sampling period (at most a second) in which a kernel ran,
            parts per million; mean over the GPUs.
        memory_bandwidth_ppm: share of it in which memory was read or written.
        sampled_ns: when, nanoseconds since the epoch; 0 if never.
    """

    utilisation_ppm: int = 0
    memory_bandwidth_ppm: int = 0
    sampled_ns: int = 0


class GpuUtilisation:
    """Samples the GPUs this process can see, at most once a second. Never fails.

    Whatever goes wrong (no GPU, no library, a slice of a GPU, whose share NVML does not tell)
    ends it for good: the share of time spent in steps has to do then.

    Args:
        environment: of the process; ``CUDA_VISIBLE_DEVICES`` names its GPUs.
        load_nvml: imports NVML's bindings.
    """

    def __init__(
        self, environment: Mapping[str, str], load_nvml: Callable[[], Any] | None = None
    ) -> None:
        self._sample = GpuSample()
        self._next_ns = 0
        self._nvml: Any = None
        self._handles: list[Any] = []
        try:
            self._nvml = (load_nvml or _load_nvml)()
            self._nvml.nvmlInit()
            self._handles = _handles(self._nvml, environment.get("CUDA_VISIBLE_DEVICES"))
        except Exception as error:  # noqa: BLE001 - whatever it is, there is none
            self._give_up(error)

    def sample(self, monotonic_ns: int, wall_ns: int) -> GpuSample:
        """The last sample, which is taken now if the one before is a second old."""
        if self._handles and monotonic_ns >= self._next_ns:
            self._next_ns = monotonic_ns + PERIOD_NS
            try:
                self._sample = self._look(wall_ns)
            except Exception as error:  # noqa: BLE001 - see above
                self._give_up(error)
        return self._sample

    def _look(self, wall_ns: int) -> GpuSample:
        rates = [self._nvml.nvmlDeviceGetUtilizationRates(each) for each in self._handles]
        scale = _PPM_PER_PERCENT / len(rates)
        return GpuSample(
            int(sum(each.gpu for each in rates) * scale),
            int(sum(each.memory for each in rates) * scale),
            wall_ns,
        )

    def _give_up(self, error: Exception) -> None:
        _LOGGER.info("Headway does not sample GPUs here: %s", error)
        self._handles = []
        self._sample = GpuSample()


def _load_nvml() -> Any:
    from vllm.platforms import current_platform  # noqa: PLC0415 - not without an engine
    from vllm.third_party import pynvml  # noqa: PLC0415

    if not current_platform.is_cuda():
        raise RuntimeError("the engine runs on no NVIDIA GPU")
    return pynvml


def _handles(nvml: Any, visible: str | None) -> list[Any]:
    """NVML's handles of the GPUs that ``CUDA_VISIBLE_DEVICES`` leaves visible.

    Raises:
        ValueError: it names a slice of a GPU, or nothing NVML knows.
    """
    if visible is None:
        return [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
    return [_handle(nvml, name.strip()) for name in visible.split(",") if name.strip()]


def _handle(nvml: Any, name: str) -> Any:
    if name.startswith("GPU-"):
        return nvml.nvmlDeviceGetHandleByUUID(name)
    if not name.isdecimal():
        raise ValueError("CUDA_VISIBLE_DEVICES names something else than whole GPUs")
    return nvml.nvmlDeviceGetHandleByIndex(int(name))
