"""The world that tests of the door take place in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headway_runtime.door.middleware import Door
from headway_runtime.exchange.admission_board import AdmissionBoardWriter, file_name
from tests.unit.door.asgi_client import Engine
from tests.unit.door.world import Watch, World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("HEADWAY_RUN_DIR", str(tmp_path))
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    engine, watch = Engine(), Watch()
    door = Door(engine)
    assert door._desk is not None
    assert door._desk.counts is not None
    door._desk.watch = watch  # type: ignore[assignment]
    made = World(tmp_path, engine, door, watch, AdmissionBoardWriter(tmp_path / file_name(0)))
    yield made
    made.board.close()
    door._desk.board.close()
    door._desk.counts.close()
