from pathlib import Path

from tests.cluster.lab.cgroups import _groups, _processes


def test_processes_of_a_group_that_has_vanished_are_none(tmp_path: Path) -> None:
    assert _processes(tmp_path / "gone") == []


def test_processes_are_read_from_every_group_below(tmp_path: Path) -> None:
    for name, pids in {"pod": "1\n2\n", "pod/container": "3\n"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "cgroup.procs").write_text(pids)
    found = {pid for group in _groups(tmp_path) for pid in _processes(group)}
    assert found == {1, 2, 3}


def test_a_group_that_does_not_exist_holds_no_groups(tmp_path: Path) -> None:
    assert _groups(tmp_path / "gone") == []
