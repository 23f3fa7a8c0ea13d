"""The model comes from a hub that fails or is slow.

The last file in alphabetical order: a test after it would have to start an engine first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.cluster.lab.paths import Paths
from tests.e2e.service import Service
from tests.faults.conftest import RecordFault, spec_of_chat
from tests.faults.hub import REPOSITORY, Hub

pytestmark = pytest.mark.cluster

MODEL_DIRECTORY = "SmolLM2-135M-Instruct"
SLOW_BYTES_PER_S = 6_000_000


@pytest.fixture
def hub() -> Iterator[Hub]:
    directory = Paths.from_environment(os.environ).models / MODEL_DIRECTORY
    with Hub(directory) as hub:
        yield hub


def from_the_hub(hub: Hub) -> dict[str, object]:
    """The engine as declared, with a model that is downloaded."""
    engine = spec_of_chat()["spec"]["engine"]
    env = [each for each in engine["env"] if each["name"] != "HF_HUB_OFFLINE"]
    return {
        "model": {"uri": f"hf://{REPOSITORY}"},
        "engine": {
            "args": engine["args"],
            "env": [*env, {"name": "HF_ENDPOINT", "value": hub.url}],
        },
    }


def test_model_download_fails(chat: Service, record: RecordFault, hub: Hub) -> None:
    """A model that cannot be downloaded.

    A new version takes its model from a hub that answers 503 to everything. Later the hub works.
    """
    hub.failing = True
    with record(chat) as fault:
        fault.cause("model.uri is of a hub that answers 503")
        chat.patch({"spec": from_the_hub(hub)})
        message = fault.shown(chat, "Ready", "False", "ModelDownloadFailed")
        assert "from the hub: HTTP 503" in message
        assert "check model.uri, model.revision and model.tokenSecret" in message
        fault.mend("the hub works")
        hub.failing = False
        fault.recovered(chat)
    assert fault.recording.lost() == []
    assert fault.seen("event", "Warning ModelDownloadFailed")


def test_model_download_slow(chat: Service, record: RecordFault, hub: Hub) -> None:
    """A model that is downloaded slowly.

    A new version takes its model (269 MB) from a hub that sends 6 MB a second. Nothing is repaired.
    """
    hub.bytes_per_s = SLOW_BYTES_PER_S
    with record(chat) as fault:
        fault.cause("model.uri is of a hub that sends 6 MB a second")
        chat.patch({"spec": from_the_hub(hub)})
        chat.wait_for("Ready", "False", timeout_s=60, reason="RollingOut")
        fault.recovered(chat)
    assert not fault.seen("condition", "Stalled is True")
    assert fault.recording.lost() == []
