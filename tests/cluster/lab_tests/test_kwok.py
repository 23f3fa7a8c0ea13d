from pathlib import Path

from tests.cluster.lab.kubectl import FAKE_KEY
from tests.cluster.lab.kwok import fake_node, kwok_command
from tests.cluster.lab.paths import Paths

PATHS = Paths(cache=Path("/cache"), state=Path("/state"))
MANAGED = "kwok.x-k8s.io/node=fake"


def test_kwok_takes_over_fake_nodes_and_no_other() -> None:
    command = [str(part) for part in kwok_command(PATHS, "10.9.0.1/16")]
    assert "--manage-all-nodes=false" in command
    assert f"--manage-nodes-with-annotation-selector={MANAGED}" in command
    annotations = fake_node(0)["metadata"]["annotations"]
    assert MANAGED in {f"{key}={value}" for key, value in annotations.items()}


def test_pods_go_to_a_fake_node_only_when_they_tolerate_it() -> None:
    (taint,) = fake_node(0)["spec"]["taints"]
    assert taint["effect"] == "NoSchedule"


def test_a_fake_node_is_never_taken_for_the_one_that_runs_pods() -> None:
    assert FAKE_KEY in fake_node(0)["metadata"]["labels"]


def test_fake_nodes_have_different_names() -> None:
    assert len({fake_node(number)["metadata"]["name"] for number in range(100)}) == 100
