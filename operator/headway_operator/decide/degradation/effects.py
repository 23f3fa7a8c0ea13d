"""What the steps do: each makes another spec of the declared one, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.degradation import Step
from headway_operator.api.model import Model
from headway_operator.api.status import TakenStep
from headway_operator.decide.degradation.ladder import ladder_of
from headway_operator.decide.degradation.memory_share import smaller


def held_back(spec: InferenceServiceSpec, steps: Iterable[TakenStep]) -> InferenceServiceSpec:
    """The spec with what the steps in force give up; itself without any."""
    return reduce(lambda changed, taken: _EFFECTS[taken.step](changed, taken), steps, spec)


def least_of(least: int, steps: Iterable[TakenStep]) -> int:
    """Pods without which the service is not ready.

    While all replicas are tried again, as few as before: a try takes nothing from anybody.
    """
    return min([least, *(each.replicas for each in steps if each.retrying and each.replicas)])


def replaces_in_place(steps: Iterable[TakenStep]) -> bool:
    """Whether pods are replaced without a spare one: none of them served, and they hold GPUs."""
    return any(each.in_place for each in steps)


def _shed_classes(spec: InferenceServiceSpec, _taken: TakenStep) -> InferenceServiceSpec:
    classes = tuple(
        each.model_copy(update={"max_queued": 1}) if each.when_unmet == "Shed" else each
        for each in spec.classes
    )
    return spec.model_copy(update={"classes": classes})


def _lower_limits(spec: InferenceServiceSpec, taken: TakenStep) -> InferenceServiceSpec:
    scheduling, engine = spec.scheduling, spec.engine
    batch = scheduling.max_batch_size or engine.max_num_seqs
    budget = scheduling.token_budget or engine.max_num_batched_tokens
    lower = {
        "max_batch_size": min(batch, taken.max_batch_size or batch),
        "token_budget": min(budget, taken.token_budget or budget),
    }
    return spec.model_copy(update={"scheduling": scheduling.model_copy(update=lower)})


def _smaller_memory(spec: InferenceServiceSpec, taken: TakenStep) -> InferenceServiceSpec:
    if taken.retrying:
        return spec
    engine = smaller(spec.engine, taken.memory_percent or 100)
    return spec if engine is None else spec.model_copy(update={"engine": engine})


def _fewer_replicas(spec: InferenceServiceSpec, taken: TakenStep) -> InferenceServiceSpec:
    if taken.retrying or taken.replicas is None:
        return spec
    return spec.model_copy(update={"replicas": min(spec.replicas, taken.replicas)})


def _fallback_model(spec: InferenceServiceSpec, taken: TakenStep) -> InferenceServiceSpec:
    source = next((each.model for each in ladder_of(spec) if each.model is not None), None)
    if source is None or taken.retrying:
        return spec
    fields = {name: getattr(source, name) for name in type(source).model_fields}
    model = Model(served_name=spec.model.served_name, **fields)
    return spec.model_copy(update={"model": model})


_EFFECTS: dict[Step, Callable[[InferenceServiceSpec, TakenStep], InferenceServiceSpec]] = {
    Step.SHED_CLASSES: _shed_classes,
    Step.LOWER_LIMITS: _lower_limits,
    Step.SMALLER_MEMORY: _smaller_memory,
    Step.FEWER_REPLICAS: _fewer_replicas,
    Step.FALLBACK_MODEL: _fallback_model,
}
