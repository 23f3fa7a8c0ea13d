"""The file of recordings."""

from __future__ import annotations

import json
from pathlib import Path

from tests.faults.recording import Happening, Recording, Sample
from tests.faults.results import _as_text, write_report


def stored(*keys: str) -> dict[str, object]:
    samples = [Sample(0.0, answered=True, ready=1), Sample(1.0, answered=True)]
    happenings = [Happening(0.5, "done", "something")]
    faults = {
        key: Recording(key, key.title(), "By hand.", "now", samples, happenings).to_json()
        for key in keys
    }
    versions = {"kubernetes": "v1"}
    return {"command": "make x", "machine": "2 cores", "versions": versions, "faults": faults}


def test_a_file_holds_one_line_for_each_sample_and_reads_back() -> None:
    text = _as_text(stored("quota"))
    assert json.loads(text) == stored("quota")
    assert sum('"at_s"' in line for line in text.splitlines()) == 3


def test_a_report_says_what_was_not_run(tmp_path: Path) -> None:
    file = tmp_path / "faults.json"
    file.write_text(_as_text(stored("quota", "no_gpu")), encoding="utf-8")
    write_report(file)
    text = file.with_suffix(".md").read_text(encoding="utf-8")
    not_run = next(line for line in text.splitlines() if line.startswith("**Not run:**"))
    assert "an image that is missing" in not_run
    assert "no GPU free" not in not_run
    assert text.index("## No_Gpu") < text.index("## Quota")
    assert "2 cores" in text
