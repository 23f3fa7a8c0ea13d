"""Engines that cannot start: never Ready, stalled in the end, well again after a fix."""

from __future__ import annotations

import os

import pytest

from tests.e2e.service import Service
from tests.e2e.waiting import wait_until
from tests.faults.changing import add_env, remove_env
from tests.faults.conftest import RecordFault

pytestmark = pytest.mark.cluster

UNTOLD = "BOGUS-VALUE-1234"
"""Part of what vLLM writes to its log and of nobody's status."""


def test_crash_loop(chat: Service, record: RecordFault) -> None:
    """An engine that crashes again and again.

    A new version sets VLLM_LOGGING_LEVEL to a level that does not exist: no check before the start
    can know that, and vLLM ends while it is imported. The variable is taken out later.
    """
    with record(chat) as fault:
        fault.cause("engine.env sets VLLM_LOGGING_LEVEL to nonsense")
        add_env(chat, {"name": "VLLM_LOGGING_LEVEL", "value": UNTOLD})
        early = chat.wait_for("Ready", "False", timeout_s=120, reason="EngineCrashed")
        assert "kubectl logs --previous -c engine" in early["message"]
        message = fault.shown(chat, "Stalled", "True", "EngineCrashed")
        assert UNTOLD not in message
        assert chat.condition("Progressing")["status"] == "False"
        fault.mend("the variable is taken out")
        remove_env(chat, "VLLM_LOGGING_LEVEL")
        fault.recovered(chat)
    assert fault.recording.lost() == []
    assert fault.seen("event", "Warning EngineCrashed")
    assert fault.seen("event", "Warning Stalled")
    assert not fault.seen("condition", UNTOLD)


def test_host_out_of_memory(chat: Service, record: RecordFault) -> None:
    """An engine that exceeds its memory limit.

    A new version has a limit of 1536 MiB, which importing and loading exceed: the kernel kills it.
    The limit is raised later, to one that no version had before.
    """
    with record(chat) as fault:
        fault.cause("engine.resources.limits.memory is 1536Mi")
        chat.patch({"spec": {"engine": {"resources": memory("1536Mi", "1536Mi")}}})
        message = fault.shown(chat, "Ready", "False", "OOMKilled")
        assert "exceeding its memory limit of 1536Mi" in message
        assert "raise engine.resources.limits.memory" in message
        fault.mend("engine.resources.limits.memory is 7Gi")
        chat.patch({"spec": {"engine": {"resources": memory("4Gi", "7Gi")}}})
        fault.recovered(chat)
    assert fault.recording.lost() == []
    assert fault.seen("event", "Warning OOMKilled")


def memory(request: str, limit: str) -> dict[str, dict[str, str]]:
    return {"requests": {"memory": request}, "limits": {"memory": limit}}


def test_engine_out_of_memory(chat: Service, record: RecordFault) -> None:
    """An engine with too little memory for its KV cache.

    A new version asks for a KV cache that is larger than the memory of this machine, as a GPU that
    is too small makes vLLM say; vLLM refuses to start. The size is put back later.
    """
    total_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**30
    with record(chat) as fault:
        fault.cause(f"VLLM_CPU_KVCACHE_SPACE is {total_gib + 8} GiB, of a machine of {total_gib}")
        add_env(chat, {"name": "VLLM_CPU_KVCACHE_SPACE", "value": str(total_gib + 8)})
        message = fault.shown(chat, "Ready", "False", "EngineOutOfMemory")
        assert "VLLM_CPU_KVCACHE_SPACE in engine.env" in message
        fault.mend("VLLM_CPU_KVCACHE_SPACE is 1 GiB again")
        add_env(chat, {"name": "VLLM_CPU_KVCACHE_SPACE", "value": "1"})
        fault.recovered(chat)
    assert fault.recording.lost() == []


def test_cache_beyond_the_limit(chat: Service, record: RecordFault) -> None:
    """A KV cache that is larger than the memory limit allows.

    A new version asks for a KV cache of 10 GiB in a container of 12 GiB, which the engine itself
    takes some of: the kernel kills it while it starts. Nobody mends it: the operator gives it less,
    and it serves. Later 1 GiB is asked for.
    """
    with record(chat) as fault:
        fault.cause("VLLM_CPU_KVCACHE_SPACE is 10 GiB, engine.resources.limits.memory 12Gi")
        chat.patch({"spec": {"engine": {"env": with_cache(chat, "10"), "resources": LARGE}}})
        chat.wait_for("Degraded", "True", timeout_s=360, reason="SmallerMemory")
        message = fault.shown(chat, "Degraded", "True", "SmallerMemory")
        assert message.startswith("OOMKilled: ")
        chat.wait_for("Ready", "True", timeout_s=360)
        (pod,) = wait_until(chat.pods, lambda pods: len(pods) == 1, timeout_s=120, what="one pod")
        env = pod["spec"]["containers"][0]["env"]
        assert {"name": "VLLM_CPU_KVCACHE_SPACE", "value": "8"} in env
        assert chat.condition("Degraded")["status"] == "True"
        fault.mend("VLLM_CPU_KVCACHE_SPACE is 1 GiB again")
        chat.patch({"spec": {"engine": {"env": with_cache(chat, "1"), "resources": SMALL}}})
        fault.recovered(chat)
    assert chat.condition("Degraded")["status"] == "False"
    assert fault.recording.lost() == []
    assert fault.seen("event", "Warning Degraded")
    assert fault.seen("event", "Normal Recovered")


LARGE, SMALL = memory("4Gi", "12Gi"), memory("4Gi", "8Gi")


def with_cache(service: Service, gib: str) -> list[dict[str, object]]:
    """The engine's variables with another size of its KV cache, in the same order."""
    found = service.read()["spec"]["engine"]["env"]
    name = "VLLM_CPU_KVCACHE_SPACE"
    return [{"name": name, "value": gib} if each["name"] == name else each for each in found]
