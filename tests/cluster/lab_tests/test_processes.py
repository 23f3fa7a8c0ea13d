import os
import subprocess
from pathlib import Path

import pytest

from tests.cluster.lab.errors import LabError
from tests.cluster.lab.paths import Paths
from tests.cluster.lab.processes import (
    container_shims,
    require_running,
    running_components,
    start_component,
    stop_components,
)

STATE = Path("/state")
PATHS = Paths(cache=Path("/cache"), state=STATE)


def add_process(  # noqa: PLR0913 - each is something that tells processes apart
    proc: Path,
    pid: int,
    *,
    program: str = "/bin/etcd",
    component: str = "etcd",
    state: Path = STATE,
    leads_session: bool = True,
) -> None:
    """Write what /proc shows of a process."""
    entry = proc / str(pid)
    entry.mkdir()
    (entry / "cmdline").write_text(f"{program}\0--flag\0")
    marks = f"HEADWAY_LAB_STATE={state}\0HEADWAY_LAB_COMPONENT={component}\0"
    (entry / "environ").write_text(f"PATH=/bin\0{marks}")
    # The name of a program may hold spaces and parentheses.
    (entry / "stat").write_text(f"{pid} (a (b) c) S 1 {pid} {pid if leads_session else 1} 0 -1\n")


def test_a_component_is_found_by_its_marks(tmp_path: Path) -> None:
    add_process(tmp_path, 7)
    (tmp_path / "self").mkdir()
    assert {name: item.pid for name, item in running_components(PATHS, tmp_path).items()} == {
        "etcd": 7
    }


@pytest.mark.parametrize(
    "foreign",
    [
        {"state": Path("/state2")},  # another lab
        {"program": "/bin/iptables"},  # a child, such as a plug-in
        {"leads_session": False},  # a child that is not another program yet
        {"component": "kubelet"},
    ],
)
def test_what_is_not_the_component_itself_is_left_alone(
    tmp_path: Path, foreign: dict[str, object]
) -> None:
    add_process(tmp_path, 7, **foreign)  # type: ignore[arg-type]
    assert running_components(PATHS, tmp_path) == {}


def test_a_recycled_pid_and_a_zombie_are_not_components(tmp_path: Path) -> None:
    add_process(tmp_path, 7)
    (tmp_path / "7" / "environ").write_text("PATH=/bin\0")
    add_process(tmp_path, 8)
    (tmp_path / "8" / "environ").write_text("")
    (tmp_path / "8" / "cmdline").write_text("")
    assert running_components(PATHS, tmp_path) == {}


def test_shims_belong_to_the_lab_whose_containerd_started_them(tmp_path: Path) -> None:
    shim = "/usr/bin/containerd-shim-runc-v2"
    add_process(tmp_path, 7, program=shim, component="containerd", leads_session=False)
    add_process(tmp_path, 8, program=shim, component="containerd", state=Path("/other"))
    add_process(tmp_path, 9, program="/usr/bin/containerd", component="containerd")
    assert container_shims(PATHS, tmp_path) == [7]


def test_a_component_starts_once_and_stops(tmp_path: Path) -> None:
    paths = Paths(cache=tmp_path / "cache", state=tmp_path / "state")
    program = tmp_path / "sleeper"
    program.symlink_to("/bin/sleep")
    start_component(paths, [program, "60"])
    first = running_components(paths)
    start_component(paths, [program, "60"])
    assert running_components(paths) == first
    require_running(paths, ["sleeper"])
    stop_components(paths, ["sleeper"])
    assert running_components(paths) == {}
    os.waitpid(first["sleeper"].pid, 0)


def test_the_error_about_a_dead_component_shows_its_log(tmp_path: Path) -> None:
    paths = Paths(cache=tmp_path / "cache", state=tmp_path / "state")
    paths.logs.mkdir(parents=True)
    (paths.logs / "etcd.log").write_text("first\nbind: address already in use\n")
    with pytest.raises(LabError, match="address already in use"):
        require_running(paths, ["etcd"])


def test_other_processes_are_never_touched(tmp_path: Path) -> None:
    paths = Paths(cache=tmp_path / "cache", state=tmp_path / "state")
    with subprocess.Popen(["/bin/sleep", "60"]) as other:
        stop_components(paths, ["sleep"])
        assert other.poll() is None
        other.kill()
