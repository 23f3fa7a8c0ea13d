"""Engines that cannot start: never Ready, stalled in the end, well again after a fix."""

from __future__ import annotations

import os

import pytest

from tests.e2e.service import Service
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
        message = fault.shown(chat, "Ready", "False", "EngineCrashed")
        assert "kubectl logs --previous -c engine" in message
        fault.mend("VLLM_CPU_KVCACHE_SPACE is 1 GiB again")
        add_env(chat, {"name": "VLLM_CPU_KVCACHE_SPACE", "value": "1"})
        fault.recovered(chat)
    assert fault.recording.lost() == []
