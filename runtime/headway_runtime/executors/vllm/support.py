"""Which engines can be driven by plans, and why not the others."""

from __future__ import annotations

import re
from typing import Any

from headway_runtime.executors.vllm.adapter import Adapter, Release
from headway_runtime.executors.vllm.adapters import ADAPTERS

_RELEASE = re.compile(r"(\d+)\.(\d+)")


class UnsupportedEngineError(Exception):
    """The engine runs by its own decisions; the message is the reason, without spaces."""


def choose_adapter(scheduler: Any, engine_version: str) -> Adapter:
    """The adapter for this scheduler.

    Args:
        scheduler: vLLM's scheduler, fully constructed.
        engine_version: vLLM's version.

    Raises:
        UnsupportedEngineError: plans cannot be carried out in it.
    """
    reason = next((name for name, applies in _obstacles(scheduler) if applies), None)
    if reason is not None:
        raise UnsupportedEngineError(reason)
    adapter = _adapter_of(engine_version)
    if adapter is None:
        raise UnsupportedEngineError("UnknownEngineVersion")
    missing = adapter.missing(scheduler)
    if missing is not None:
        raise UnsupportedEngineError(f"EngineLacks:{missing}")
    return adapter(scheduler)


def _adapter_of(engine_version: str) -> type[Adapter] | None:
    match = _RELEASE.match(engine_version)
    if match is None:
        return None
    release: Release = (int(match[1]), int(match[2]))
    return next((each for each in ADAPTERS if each.first <= release <= each.last), None)


def _obstacles(scheduler: Any) -> tuple[tuple[str, bool], ...]:
    config = scheduler.vllm_config
    model, scheduling = config.model_config, config.scheduler_config
    return (
        # A heap orders the queue by the client's priorities, so an order of ours is ignored.
        ("SchedulingPolicyNotFcfs", scheduling.policy != "fcfs"),
        # Several batches in flight: a step's limits are not those of the batch that runs.
        ("PipelineParallel", config.parallel_config.pipeline_parallel_size > 1),
        ("PoolingModel", model.runner_type == "pooling"),
        ("EncoderDecoderModel", bool(model.is_encoder_decoder)),
        ("DiffusionModel", bool(getattr(model, "is_diffusion", False))),
        # Chunks must end at block boundaries there: a small budget may never reach one.
        ("HybridModel", bool(model.is_hybrid) or _has_mamba(scheduler.kv_cache_config)),
        ("KvConnector", config.kv_transfer_config is not None),
        ("EncoderConnector", getattr(config, "ec_transfer_config", None) is not None),
        # A prompt or image that must go in one piece never fits a lowered budget.
        ("ChunkedPrefillDisabled", not scheduling.enable_chunked_prefill),
        ("ChunkedMultimodalDisabled", _whole_images(model, scheduling)),
    )


def _has_mamba(kv_cache_config: Any) -> bool:
    groups = getattr(kv_cache_config, "kv_cache_groups", ())
    return any("Mamba" in type(group.kv_cache_spec).__name__ for group in groups)


def _whole_images(model: Any, scheduling: Any) -> bool:
    return bool(scheduling.disable_chunked_mm_input) and bool(model.is_multimodal_model)
