"""How an engine with several API servers ends."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from headway_runtime.executors.vllm import several_api_servers
from headway_runtime.executors.vllm.several_api_servers import LAST_WORDS_S, tend


class ApiServer:
    """A process that ends by itself after so long, if it does."""

    def __init__(self, ends_after_s: float | None) -> None:
        self.ends_after_s = ends_after_s
        self.waited_s = 0.0
        self.is_killed = False

    def join(self, timeout: float) -> None:
        self.waited_s += timeout

    def is_alive(self) -> bool:
        has_ended = self.ends_after_s is not None and self.waited_s >= self.ends_after_s
        return not has_ended and not self.is_killed

    def kill(self) -> None:
        self.is_killed = True


class Command:
    """VLLM's command ``serve``: what it waits with raises what is to come."""

    def __init__(self, raises: BaseException | None, *servers: ApiServer) -> None:
        self.is_listening = True
        listens = SimpleNamespace(close=lambda: setattr(self, "is_listening", False))
        self.manager = SimpleNamespace(processes=list(servers), sock=listens)
        self.module = ModuleType("serve")
        self.module.wait_for_completion_or_failure = self._wait  # type: ignore[attr-defined]
        self.module.run_multi_api_server = self._run  # type: ignore[attr-defined]
        self._raises = raises

    def _wait(self, *, api_server_manager: Any, engine_manager: str) -> None:
        assert (api_server_manager, engine_manager) == (self.manager, "engines")
        if self._raises is not None:
            raise self._raises

    def _run(self, _: Any) -> None:
        self.module.wait_for_completion_or_failure(
            api_server_manager=self.manager, engine_manager="engines"
        )

    def ended(self, timeout_s: int | None = 20, **flags: str) -> list[bool]:
        """Which API servers were killed before vLLM tells them to end."""
        tend(self.module)
        told = nullcontext() if self._raises is None else pytest.raises(type(self._raises))
        with told:
            self.module.run_multi_api_server(SimpleNamespace(shutdown_timeout=timeout_s, **flags))
        return [each.is_killed for each in self.manager.processes]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[float]:
    """Time-outs that an engine was waited for; it is idle when they are not 0."""
    monkeypatch.setenv("HEADWAY_RUN_DIR", str(tmp_path))
    waited: list[float] = []

    def wait(_: Any, timeout_s: float, **options: Any) -> bool:
        assert options == {"least_s": 0.0}
        waited.append(timeout_s)
        return timeout_s > 0

    monkeypatch.setattr(several_api_servers, "wait_until_idle", wait)
    return waited


def test_sigterm_lets_what_is_under_way_finish(waits: list[float]) -> None:
    command = Command(SystemExit(), ApiServer(None))
    assert command.ended() == [False]
    assert waits == [20]
    assert command.is_listening


@pytest.mark.parametrize("timeout_s", [0, None])
def test_what_has_not_finished_in_time_is_cut_off(
    waits: list[float], timeout_s: int | None
) -> None:
    command = Command(SystemExit(), ApiServer(None), ApiServer(None))
    assert command.ended(timeout_s) == [True, True]
    assert waits == [0]
    assert not command.is_listening


def test_without_a_run_directory_nobody_knows_what_is_under_way(
    waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEADWAY_RUN_DIR")
    assert Command(SystemExit(), ApiServer(None)).ended() == [False]
    assert waits == []


def test_a_death_is_told_to_clients_and_waited_for_no_longer(waits: list[float]) -> None:
    command = Command(RuntimeError("died"), ApiServer(LAST_WORDS_S / 2), ApiServer(None))
    assert command.ended() == [False, True]
    assert not command.is_listening
    assert waits == []


def test_an_end_of_its_own_is_left_alone(waits: list[float]) -> None:
    command = Command(None, ApiServer(None))
    assert command.ended() == [False]
    assert command.is_listening
    assert waits == []


def test_a_command_that_works_otherwise_is_left_alone() -> None:
    module = ModuleType("serve")
    tend(module)
    assert not hasattr(module, "run_multi_api_server")


def test_an_engine_is_told_that_it_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
    # It is put back afterwards.
    monkeypatch.setenv(name, "")
    monkeypatch.delenv(name)
    Command(None).ended()
    assert name not in os.environ
    Command(None).ended(otlp_traces_endpoint="http://collector:4317")
    assert os.environ[name] == "http://collector:4317"
