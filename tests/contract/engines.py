"""Real vLLM schedulers over a model that is only a configuration, with a made-up model runner.

What a scheduler decides depends on none of the weights, so a contract test takes seconds.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from vllm.config import CacheConfig, DeviceConfig, ModelConfig, SchedulerConfig, VllmConfig
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager

from headway_runtime.exchange import policy_file, statistics_file
from headway_runtime.exchange.step_record import StepRecord
from headway_runtime.executors.vllm.plugin import HeadwayScheduler
from headway_runtime.policy import Policy, Scope, Stamp, TrafficClass, encode

BLOCK_TOKENS = 16
MAX_MODEL_TOKENS = 2048
INTERACTIVE = TrafficClass("interactive", ttft_ms=500)
BATCH = TrafficClass("batch", deadline_s=60)

_LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_hidden_layers": 1,
    "num_key_value_heads": 4,
    "vocab_size": 256,
    "max_position_embeddings": MAX_MODEL_TOKENS,
    "torch_dtype": "float32",
}


def write_model(directory: Path) -> Path:
    """A model's directory with no more than its configuration."""
    (directory / "config.json").write_text(json.dumps(_LLAMA), encoding="ascii")
    return directory


def policy(counter: int = 1, **fields: Any) -> Policy:
    """A policy with two classes; ``counter`` orders those of one test."""
    settings = {"classes": (INTERACTIVE, BATCH), **fields}
    return Policy(scope=Scope("service"), stamp=Stamp(1, 1, counter), **settings)


@dataclass
class Engine:
    """A scheduler and the loop around it.

    Attributes:
        scheduler: the scheduler under test.
        run_dir: the directory it shares with a sidecar.
        steps: the scheduler outputs of all steps, oldest first.
        began_s: when it was made, seconds since the epoch.
    """

    scheduler: Any
    run_dir: Path
    steps: list[Any] = field(default_factory=list)
    began_s: float = field(default_factory=time.time)
    _sampling: dict[int, list[list[int]]] = field(default_factory=dict)

    def publish(self, new: Policy) -> None:
        """What the sidecar does with a policy it has accepted."""
        policy_file.write(self.run_dir / policy_file.FILE_NAME, encode(new))

    def add(
        self, name: str, traffic_class: str | None = None, *, prompt_tokens: int = 32, **other: Any
    ) -> None:
        """Send a request.

        ``other`` may hold output_tokens, arrival_s (since the engine began), extra_args, resumable,
        stop, block_hasher, and grammar: what its compiler will have made of it.
        """
        named = {"headway_class": traffic_class} if traffic_class else None
        parameters = SamplingParams(
            max_tokens=other.get("output_tokens", 4),
            ignore_eos=True,
            extra_args=other.get("extra_args", named),
            stop=other.get("stop"),
            detokenize="stop" in other,
            structured_outputs=StructuredOutputsParams(regex="x") if "grammar" in other else None,
        )
        request = Request(
            request_id=name,
            prompt_token_ids=[7] * prompt_tokens,
            sampling_params=parameters,
            pooling_params=None,
            arrival_time=self.began_s + other.get("arrival_s", time.time() - self.began_s),
            resumable=other.get("resumable", False),
            block_hasher=other.get("block_hasher"),
        )
        if "grammar" in other:
            request.structured_output_request.grammar = other["grammar"]
        self.scheduler.add_request(request)

    def schedule(self) -> Any:
        """The first half of a step."""
        output = self.scheduler.schedule()
        self.steps.append(output)
        # A later step may be scheduled before this one is finished and go on with a prompt.
        self._sampling[id(output)] = [
            [] if self.scheduler.requests[name].is_prefill_chunk else [3]
            for name in output.num_scheduled_tokens
        ]
        return output

    def finish(self, output: Any) -> Any:
        """The second half: every request whose prompt is done gets one token."""
        names = list(output.num_scheduled_tokens)
        return self.scheduler.update_from_output(
            output,
            ModelRunnerOutput(
                req_ids=names,
                req_id_to_index={name: index for index, name in enumerate(names)},
                sampled_token_ids=self._sampling.pop(id(output)),
                logprobs=None,
                prompt_logprobs_dict={},
                pooler_output=[],
            ),
        )

    def step(self) -> Any:
        """One whole step, without overlap."""
        output = self.schedule()
        self.finish(output)
        return output

    def run(self, most_steps: int = 1000) -> Iterator[Any]:
        """Steps until nothing is left to do."""
        for _ in range(most_steps):
            if not self.scheduler.has_requests():
                return
            yield self.step()
        raise AssertionError("the engine makes no progress")

    @property
    def admitted(self) -> list[str]:
        """Requests in the order they first got into a step."""
        return [new.req_id for output in self.steps for new in output.scheduled_new_reqs]

    @property
    def waiting(self) -> list[str]:
        """Waiting requests in their order."""
        return [request.request_id for request in self.scheduler.waiting]

    @property
    def running(self) -> list[str]:
        """Running requests."""
        return [request.request_id for request in self.scheduler.running]

    @property
    def record(self) -> StepRecord:
        """The newest record in the statistics file."""
        latest = self.statistics(records=1).latest
        assert latest is not None
        return latest

    def statistics(self, records: int = 100) -> statistics_file.EngineStatistics:
        """The statistics file."""
        path = self.run_dir / statistics_file.file_name(0)
        return statistics_file.read(path, records, with_classes=True)

    @property
    def totals(self) -> dict[str, tuple[int, int]]:
        """Requests that have ended, and those of them that met their objectives, by class."""
        classes = self.statistics(records=0).classes
        return {each.name: (each.requests_total, each.attained_total) for each in classes}

    @property
    def under_way(self) -> int:
        """Requests that are followed."""
        return int(self.scheduler._headway._journal.requests_under_way)


def engine_configuration(model_dir: Path, **scheduling: Any) -> VllmConfig:
    """VLLM's configuration for the model; ``scheduling`` goes to its scheduler's configuration."""
    model = ModelConfig(model=str(model_dir), skip_tokenizer_init=True, dtype="float32", seed=0)
    options = {"max_num_seqs": 16, "max_num_batched_tokens": 256, "enable_chunked_prefill": True}
    scheduler = SchedulerConfig(
        **{**options, **scheduling},
        max_model_len=MAX_MODEL_TOKENS,
        is_encoder_decoder=False,
        scheduler_cls=HeadwayScheduler,
    )
    return VllmConfig(
        model_config=model,
        scheduler_config=scheduler,
        cache_config=CacheConfig(block_size=BLOCK_TOKENS, enable_prefix_caching=False),
        device_config=DeviceConfig("cpu"),
    )


def build_engine(
    configuration: VllmConfig,
    run_dir: Path,
    *,
    blocks: int = 1000,
    scheduler_class: type = HeadwayScheduler,
) -> Engine:
    """An engine with this many KV blocks that shares ``run_dir`` with a sidecar."""
    os.environ["HEADWAY_RUN_DIR"] = str(run_dir)
    configuration.cache_config.num_gpu_blocks = blocks
    attention = FullAttentionSpec(
        block_size=BLOCK_TOKENS, num_kv_heads=1, head_size=1, dtype=torch.float32
    )
    kv_cache = KVCacheConfig(
        num_blocks=blocks,
        kv_cache_tensors=[],
        kv_cache_groups=[KVCacheGroupSpec(["layer"], attention)],
    )
    scheduler = scheduler_class(
        vllm_config=configuration,
        kv_cache_config=kv_cache,
        structured_output_manager=StructuredOutputManager(configuration),
        block_size=BLOCK_TOKENS,
        log_stats=True,
    )
    return Engine(scheduler, run_dir)
