"""How steps and shortages are told: fixed texts and numbers, nothing from outside."""

from __future__ import annotations

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.degradation import Step
from headway_operator.api.status import TakenStep
from headway_operator.decide.degradation.ladder import ladder_of

_CAUSES = {
    "KVCacheFull": "KV blocks run out while requests wait, and objectives or work are lost",
    "OOMKilled": "engines were killed again and again for exceeding their memory limit",
    "EngineOutOfMemory": "engines failed again and again for want of memory",
    "KVCacheTooSmall": "the model leaves an engine too little memory for its KV cache",
    "InsufficientGPU": "there are too few GPUs for all pods",
    "InsufficientResources": "the nodes have too little room for all pods",
    "QuotaExceeded": "the namespace's quota is used up",
}


def effect(taken: TakenStep, spec: InferenceServiceSpec) -> str:
    """What a step does, as a sentence without its dot."""
    model = next((each.model.uri for each in ladder_of(spec) if each.model), "another model")
    more = ", what is declared is tried again" if taken.retrying else ""
    texts = {
        Step.SHED_CLASSES: "of a class that sheds, one request waits in an engine at most",
        Step.LOWER_LIMITS: (
            f"an engine runs {taken.max_batch_size} requests at once at most, in steps of "
            f"{taken.token_budget} tokens"
        ),
        Step.SMALLER_MEMORY: f"engines take {taken.memory_percent} % of the memory declared{more}",
        Step.FEWER_REPLICAS: f"{taken.replicas} pods at most{more}",
        Step.FALLBACK_MODEL: f"{model} is served under the model's name{more}",
    }
    return texts[taken.step]


def told(taken: TakenStep, spec: InferenceServiceSpec) -> str:
    """A step with its cause."""
    cause = _CAUSES.get(taken.reason, "something is short")
    return f"{taken.reason}: {cause}, so {effect(taken, spec)}"
