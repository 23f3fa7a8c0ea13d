"""The engine's command line."""

from __future__ import annotations

from headway_operator.api.spec import InferenceServiceSpec
from headway_operator.render.api_servers import api_servers, chosen_api_servers
from headway_operator.render.model import locate
from headway_operator.render.names import HTTP_PORT, LIBRARY_DIR

SCHEDULER_CLASS = "headway_runtime.executors.vllm.plugin.HeadwayScheduler"
DOOR_CLASS = "headway_runtime.door.middleware.Door"

# A shell sets it: a pod's spec cannot read the image's own PYTHONPATH, to which it is prepended.
_ENVIRONMENT = f"PYTHONPATH={LIBRARY_DIR}/lib${{PYTHONPATH:+:$PYTHONPATH}}"
_ONE_API_SERVER = "vllm.entrypoints.openai.api_server"
_SEVERAL_API_SERVERS = "headway_runtime.executors.vllm.serve"


def engine_program(spec: InferenceServiceSpec) -> str:
    """The Python module that is run: only vLLM's own command line starts several API servers."""
    return _ONE_API_SERVER if api_servers(spec.engine) == 1 else _SEVERAL_API_SERVERS


def engine_command(spec: InferenceServiceSpec) -> list[str]:
    """What the engine's arguments are given to."""
    start = f'{_ENVIRONMENT} exec python3 -m {engine_program(spec)} "$@"'
    return ["sh", "-c", start, "headway"]


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
    if chosen_api_servers(engine.args) is None and api_servers(engine) > 1:
        arguments += ["--api-server-count", str(api_servers(engine))]
    return [*arguments, *engine.args]


def preflight_arguments(service: str, spec: InferenceServiceSpec) -> list[str]:
    """Arguments of the preflight check: the model, then the engine's whole command line."""
    revision = [] if spec.model.revision is None else ["--revision", spec.model.revision]
    model = ["--model", locate(spec.model).argument]
    return [*model, *revision, "--", *engine_arguments(service, spec)]
