"""The model comes from a hub that fails or is slow."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.cluster.lab.paths import Paths
from tests.e2e.service import Service
from tests.faults.conftest import RecordFault
from tests.faults.hub import REPOSITORY, Hub

pytestmark = pytest.mark.cluster

MODEL_DIRECTORY = "SmolLM2-135M-Instruct"
SLOW_BYTES_PER_S = 6_000_000


@pytest.fixture
def hub() -> Iterator[Hub]:
    directory = Paths.from_environment(os.environ).models / MODEL_DIRECTORY
    with Hub(directory) as hub:
        yield hub


def from_the_hub(service: Service, hub: Hub) -> dict[str, object]:
    """A spec whose model is downloaded; put back afterwards, as the hub is gone then."""
    env = [
        each
        for each in service.read()["spec"]["engine"]["env"]
        if each["name"] not in {"HF_HUB_OFFLINE", "HF_ENDPOINT"}
    ]
    return {
        "model": {"uri": f"hf://{REPOSITORY}"},
        "engine": {"env": [*env, {"name": "HF_ENDPOINT", "value": hub.url}]},
    }


def put_back(service: Service) -> None:
    env = [
        each
        for each in service.read()["spec"]["engine"]["env"]
        if each["name"] not in {"HF_HUB_OFFLINE", "HF_ENDPOINT"}
    ]
    offline = {"name": "HF_HUB_OFFLINE", "value": "1"}
    change = {
        "model": {"uri": f"pvc://models/{MODEL_DIRECTORY}"},
        "engine": {"env": [*env, offline]},
    }
    service.patch({"spec": change})


def test_model_download_fails(chat: Service, record: RecordFault, hub: Hub) -> None:
    """A model that cannot be downloaded.

    A new version takes its model from a hub that answers 503 to everything. Later the hub works.
    """
    hub.failing = True
    try:
        with record(chat) as fault:
            fault.cause("model.uri is of a hub that answers 503")
            chat.patch({"spec": from_the_hub(chat, hub)})
            message = fault.shown(chat, "Ready", "False", "EngineCrashed")
            assert "kubectl logs --previous -c engine" in message
            fault.mend("the hub works")
            hub.failing = False
            fault.recovered(chat)
        assert fault.recording.lost() == []
    finally:
        put_back(chat)


def test_model_download_slow(chat: Service, record: RecordFault, hub: Hub) -> None:
    """A model that is downloaded slowly.

    A new version takes its model (269 MB) from a hub that sends 6 MB a second. Nothing is repaired.
    """
    hub.bytes_per_s = SLOW_BYTES_PER_S
    try:
        with record(chat) as fault:
            fault.cause("model.uri is of a hub that sends 6 MB a second")
            chat.patch({"spec": from_the_hub(chat, hub)})
            fault.shown(chat, "Ready", "False", "RollingOut")
            fault.recovered(chat)
        assert not fault.seen("condition", "Stalled is True")
        assert fault.recording.lost() == []
    finally:
        put_back(chat)
