"""How an engine is made to take less memory: by what its user said, or by vLLM's fraction.

https://docs.vllm.ai/en/latest/configuration/conserving_memory/ and, on CPUs,
https://docs.vllm.ai/en/latest/getting_started/installation/cpu/
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from headway_operator.api.engine import Engine
from headway_operator.api.plain import EnvVar

CPU_SPACE = "VLLM_CPU_KVCACHE_SPACE"
"""KV cache of the CPU build, in whole GiB."""

FRACTION_FLAG = "--gpu-memory-utilization"
BYTES_FLAG = "--kv-cache-memory-bytes"
"""Where it is given, vLLM does not look at the fraction."""

DEFAULT_FRACTION = 0.9
"""vLLM's own is this or slightly more, depending on its version."""

_HOST_RESOURCES = re.compile(r"cpu|memory|ephemeral-storage|hugepages-.*")


def keeps_kv_on_host(engine: Engine) -> bool:
    """Whether KV blocks lie in the memory that the container's limit counts."""
    limits = (engine.resources.limits if engine.resources else None) or {}
    has_device = any(not _HOST_RESOURCES.fullmatch(name) for name in limits)
    return not has_device or any(each.name == CPU_SPACE for each in engine.env)


def smaller(engine: Engine, percent: int) -> Engine | None:
    """The engine with so much of the memory that is declared; None where that cannot be said."""
    if any(each.name == CPU_SPACE for each in engine.env):
        return _smaller_space(engine, percent)
    if _given(engine.args, BYTES_FLAG) is not None:
        return _with_flag(engine, BYTES_FLAG, _scaled_bytes(engine.args, percent))
    return _with_flag(engine, FRACTION_FLAG, _scaled_fraction(engine.args, percent))


def _smaller_space(engine: Engine, percent: int) -> Engine | None:
    before = next(each.value or "" for each in engine.env if each.name == CPU_SPACE)
    if not before.isdecimal() or int(before) * percent // 100 in (0, int(before)):
        return None
    after = EnvVar(name=CPU_SPACE, value=str(int(before) * percent // 100))
    env = tuple(after if each.name == CPU_SPACE else each for each in engine.env)
    return engine.model_copy(update={"env": env})


def _scaled_bytes(args: Sequence[str], percent: int) -> str | None:
    given = _given(args, BYTES_FLAG) or ""
    return str(int(given) * percent // 100) if given.isdecimal() else None


def _scaled_fraction(args: Sequence[str], percent: int) -> str | None:
    given = _given(args, FRACTION_FLAG)
    try:
        fraction = DEFAULT_FRACTION if given is None else float(given)
    except ValueError:
        return None
    return f"{fraction * percent / 100:.3f}" if 0 < fraction <= 1 else None


def _with_flag(engine: Engine, flag: str, value: str | None) -> Engine | None:
    """Of a flag that is given twice, the last one counts."""
    if value is None:
        return None
    return engine.model_copy(update={"args": (*engine.args, f"{flag}={value}")})


def _given(args: Sequence[str], flag: str) -> str | None:
    """The value of a flag, the last one where it is given several times; None without it."""
    return next(iter(reversed(list(_values(args, flag)))), None)


def _values(args: Sequence[str], flag: str) -> Iterator[str]:
    for at, argument in enumerate(args):
        name, has_value, value = argument.partition("=")
        if name.replace("_", "-") != flag:
            continue
        yield value if has_value else (args[at + 1] if at + 1 < len(args) else "")
