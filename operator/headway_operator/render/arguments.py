"""The engine's command line."""

from __future__ import annotations

from headway_operator.api.spec import InferenceServiceSpec
from headway_operator.render.model import locate
from headway_operator.render.names import HTTP_PORT, LIBRARY_DIR

SCHEDULER_CLASS = "headway_runtime.executors.vllm.plugin.HeadwayScheduler"
DOOR_CLASS = "headway_runtime.door.middleware.Door"

# The shell is there only to prepend to the image's own PYTHONPATH, which a pod's spec cannot read.
_LAUNCH = (
    f"PYTHONPATH={LIBRARY_DIR}/lib${{PYTHONPATH:+:$PYTHONPATH}} "
    'exec python3 -m vllm.entrypoints.openai.api_server "$@"'
)
ENGINE_COMMAND = ("sh", "-c", _LAUNCH, "headway")


def engine_arguments(service: str, spec: InferenceServiceSpec) -> list[str]:
    """Arguments of vLLM's OpenAI server: those that Headway sets, then the user's."""
    engine, model = spec.engine, spec.model
    arguments = [
        *("--model", locate(model).argument),
        *("--served-model-name", model.served_name or service),
        *("--port", str(HTTP_PORT)),
        *("--scheduler-cls", SCHEDULER_CLASS),
        *("--middleware", DOOR_CLASS),
        *("--max-num-seqs", str(engine.max_num_seqs)),
        *("--max-num-batched-tokens", str(engine.max_num_batched_tokens)),
        *("--shutdown-timeout", str(engine.shutdown_timeout_seconds)),
    ]
    if engine.tensor_parallel_size > 1:
        arguments += ["--tensor-parallel-size", str(engine.tensor_parallel_size)]
    if model.revision is not None:
        arguments += ["--revision", model.revision]
    return [*arguments, *engine.args]


def preflight_arguments(service: str, spec: InferenceServiceSpec) -> list[str]:
    """Arguments of the preflight check: the model, then the engine's whole command line."""
    revision = [] if spec.model.revision is None else ["--revision", spec.model.revision]
    model = ["--model", locate(spec.model).argument]
    return [*model, *revision, "--", *engine_arguments(service, spec)]
