"""What a new version of a service refers to is not there: the pods of the old one serve on."""

from __future__ import annotations

import os

import pytest

from tests.cluster.lab.paths import Paths
from tests.cluster.lab.volumes import persistent_volume, persistent_volume_claim
from tests.e2e.service import Service
from tests.faults.changing import add_env, create
from tests.faults.conftest import CLAIM, RecordFault
from tests.faults.registry import EmptyRegistry

pytestmark = pytest.mark.cluster


def test_missing_secret(chat: Service, record: RecordFault) -> None:
    """A Secret that does not exist.

    A new version of the engine takes an environment variable from a Secret that nobody made. It is
    made afterwards.
    """
    with record(chat) as fault:
        fault.cause("engine.env refers to the Secret missing-token")
        reference = {"secretKeyRef": {"name": "missing-token", "key": "token"}}
        add_env(chat, {"name": "MISSING_TOKEN", "valueFrom": reference})
        message = fault.shown(chat, "Stalled", "True", "ReferenceNotFound")
        assert "Secret missing-token does not exist: create it" in message
        assert chat.condition("Ready")["reason"] == "ReferenceNotFound"
        fault.mend("the Secret is created; nothing else is done")
        create(chat, secret("missing-token", "one-two-three"))
        fault.recovered(chat)
    assert fault.recording.lost() == []
    assert fault.seen("event", "Warning ReferenceNotFound")
    assert fault.seen("event", "Normal PodsReady")


def secret(name: str, token: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "stringData": {"token": token},
    }


def test_missing_claim(chat: Service, record: RecordFault) -> None:
    """A claim that does not exist.

    A new version of the engine mounts a PersistentVolumeClaim that nobody made. Volume and claim
    are made afterwards.
    """
    with record(chat) as fault:
        fault.cause("engine.volumes refers to the claim adapters")
        volume = {"name": CLAIM, "persistentVolumeClaim": {"claimName": CLAIM}}
        engine = chat.read()["spec"]["engine"]
        change = {
            "volumes": [*engine["volumes"], volume],
            "volumeMounts": [
                *engine["volumeMounts"],
                {"name": CLAIM, "mountPath": "/adapters"},
            ],
        }
        chat.patch({"spec": {"engine": change}})
        message = fault.shown(chat, "Stalled", "True", "VolumeClaimNotFound")
        assert "PersistentVolumeClaim adapters does not exist: create it" in message
        fault.mend("volume and claim are created; nothing else is done")
        models = Paths.from_environment(os.environ).models
        create(
            chat,
            persistent_volume(chat.namespace, CLAIM, models),
            persistent_volume_claim(chat.namespace, CLAIM),
        )
        fault.recovered(chat)
    assert fault.recording.lost() == []
    assert fault.seen("event", "Warning VolumeClaimNotFound")


def test_missing_image(chat: Service, record: RecordFault) -> None:
    """An image that does not exist.

    A new version of the engine names an image of which its registry (a real one as far as HTTP
    goes, on this machine) says that it has no such thing. The name is corrected afterwards.
    """
    with EmptyRegistry() as registry, record(chat) as fault:
        image = chat.read()["spec"]["engine"]["image"]
        fault.cause(f"engine.image is {registry.image('no-such-engine:1')}")
        chat.patch({"spec": {"engine": {"image": registry.image("no-such-engine:1")}}})
        message = fault.shown(chat, "Stalled", "True", "ImageNotFound")
        assert "no-such-engine:1" in message
        assert "correct it" in message
        fault.mend("engine.image is what it was before")
        chat.patch({"spec": {"engine": {"image": image}}})
        fault.recovered(chat)
    assert registry.asked
    assert fault.recording.lost() == []
    assert fault.seen("event", "Warning ImageNotFound")
