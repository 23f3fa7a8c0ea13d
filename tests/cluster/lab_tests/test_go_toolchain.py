from pathlib import Path

import pytest

from tests.cluster.lab.errors import LabError
from tests.cluster.lab.go_toolchain import choose_go

OLD, NEW, NEWER = Path("/usr/bin/go"), Path("/opt/go"), Path("/venv/bin/go")


def test_the_machines_own_go_comes_first() -> None:
    found = choose_go([(NEW, "go version go1.25.0 linux/amd64"), (NEWER, "go version go1.27.1 x")])
    assert found == NEW


def test_a_go_that_is_too_old_is_passed_over() -> None:
    found = choose_go([(OLD, "go version go1.19.8 linux/amd64"), (NEW, "go version go1.26 x")])
    assert found == NEW


@pytest.mark.parametrize("candidates", [[], [(OLD, "go version go1.9.8 linux/amd64")], [(OLD, "")]])
def test_without_a_usable_go_the_error_names_what_there_is_and_the_remedy(
    candidates: list[tuple[Path, str]],
) -> None:
    with pytest.raises(LabError, match="make environment") as refusal:
        choose_go(candidates)
    assert all(str(path) in str(refusal.value) for path, _ in candidates)
