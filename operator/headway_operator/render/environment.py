"""Environment of the engine container."""

from __future__ import annotations

from typing import Any

from headway_operator.api.spec import InferenceServiceSpec
from headway_operator.render.names import CACHE_DIR, HOME_DIR, RUN_DIR

# Everything that vLLM, torch and their compilers write goes to the pod's own directories: the
# image's user cannot write elsewhere. USER is there because an arbitrary uid has no passwd
# entry and torch asks for the user's name.
_WRITABLE_PLACES = {
    "HOME": HOME_DIR,
    "USER": "headway",
    "LOGNAME": "headway",
    "XDG_CACHE_HOME": f"{HOME_DIR}/.cache",
    "XDG_CONFIG_HOME": f"{HOME_DIR}/.config",
    "HF_HOME": f"{HOME_DIR}/.cache/huggingface",
    "VLLM_CACHE_ROOT": f"{HOME_DIR}/.cache/vllm",
    "VLLM_CONFIG_ROOT": f"{HOME_DIR}/.config/vllm",
    "TRITON_CACHE_DIR": f"{HOME_DIR}/.cache/triton",
    "TORCHINDUCTOR_CACHE_DIR": f"{HOME_DIR}/.cache/torchinductor",
    "CUDA_CACHE_PATH": f"{HOME_DIR}/.cache/cuda",
    "NUMBA_CACHE_DIR": f"{HOME_DIR}/.cache/numba",
    "FLASHINFER_WORKSPACE_BASE": HOME_DIR,
}


def engine_environment(spec: InferenceServiceSpec) -> list[dict[str, Any]]:
    """Variables of the engine: Headway's, then the user's, which win where both name one."""
    model = spec.model
    places = dict(_WRITABLE_PLACES)
    if model.cache_claim is not None:
        places["HF_HOME"] = CACHE_DIR
    variables: dict[str, dict[str, Any]] = {
        name: {"name": name, "value": value} for name, value in places.items()
    }
    variables["HEADWAY_RUN_DIR"] = {"name": "HEADWAY_RUN_DIR", "value": RUN_DIR}
    if model.token_secret is not None:
        reference = model.token_secret.to_kubernetes()
        variables["HF_TOKEN"] = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": reference}}
    variables.update({variable.name: variable.to_kubernetes() for variable in spec.engine.env})
    return list(variables.values())
