from pathlib import Path

import pytest

from tests.cluster.lab.cache import cached_directory, digest, digest_files, point
from tests.cluster.lab.files import write_if_changed
from tests.cluster.lab.paths import Paths


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(cache=tmp_path / "cache", state=tmp_path / "state")


def test_a_directory_is_made_once_per_key(paths: Paths) -> None:
    made: list[Path] = []

    def make(target: Path) -> None:
        made.append(target)
        (target / "result").write_text("done")

    first = cached_directory(paths, "thing", "1", make)
    assert cached_directory(paths, "thing", "1", make) == first
    assert (first / "result").read_text() == "done"
    assert cached_directory(paths, "thing", "2", make) != first
    assert len(made) == 2


def test_an_interrupted_build_leaves_nothing_that_looks_finished(paths: Paths) -> None:
    def fail(target: Path) -> None:
        (target / "half").write_text("")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached_directory(paths, "thing", "1", fail)
    result = cached_directory(paths, "thing", "1", lambda target: (target / "whole").touch())
    assert [file.name for file in result.iterdir()] == ["whole"]


def test_everyone_may_read_what_is_cached(paths: Paths) -> None:
    directory = cached_directory(paths, "thing", "1", lambda target: target.chmod(0o700))
    assert directory.stat().st_mode & 0o777 == 0o755


def test_a_digest_tells_parts_apart() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("ab") == digest(b"ab")


def test_a_digest_of_files_covers_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    files = [tmp_path / "a", tmp_path / "b"]
    before = digest_files(tmp_path, files)
    assert digest_files(tmp_path, reversed(files)) == before
    (tmp_path / "b").write_text("3")
    assert digest_files(tmp_path, files) != before
    (tmp_path / "b").write_text("2")
    (tmp_path / "b").rename(tmp_path / "c")
    assert digest_files(tmp_path, [tmp_path / "a", tmp_path / "c"]) != before


def test_a_stable_name_follows_the_newest_directory(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        point(tmp_path / "link", tmp_path / name)
    assert (tmp_path / "link").resolve() == tmp_path / "new"
    assert not (tmp_path / "link").readlink().is_absolute()


def test_a_file_with_the_right_text_is_not_written_again(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_if_changed(file, "one")
    before = file.stat().st_mtime_ns
    write_if_changed(file, "one")
    assert file.stat().st_mtime_ns == before
    write_if_changed(file, "two")
    assert file.read_text() == "two"
