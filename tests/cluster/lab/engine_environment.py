"""The engine's Python environment: vLLM for the CPU, made once and mounted into pods.

As an image it would be gigabytes to write, import and unpack; a hostPath mount costs nothing. It
stands at `<cache>/engine-<hash>` and is mounted at /opt/engine. Scripts in its bin directory do not
survive the two moves (their first line holds a path), so start programs by `python3 -m`. Its folder
`vllm-cache` is for VLLM_CACHE_ROOT: without it, a fifth of an engine's start goes to looking into
the class of its model.
"""

from dataclasses import dataclass
from pathlib import Path

from .cache import cached_directory, digest, make_readable, point
from .commands import run, system_environment
from .errors import LabError
from .paths import Paths
from .progress import Progress
from .python_tools import SYSTEM_PYTHON, compile_python, find_uv, system_python_version

VLLM_CACHE = "vllm-cache"
_INSPECTION = Path(__file__).with_name("inspect_model.py")


@dataclass(frozen=True)
class EngineRequirements:
    """What is installed: a requirements file, and uv overrides for what it cannot express."""

    requirements: Path
    overrides: Path

    @classmethod
    def of_repository(cls, repository: Path) -> "EngineRequirements":
        """The two files of a checkout; LabError when one is missing."""
        directory = repository / "requirements"
        files = cls(directory / "engine-cpu.txt", directory / "engine-cpu.overrides.txt")
        for file in (files.requirements, files.overrides):
            if not file.is_file():
                raise LabError(f"{file} is missing: restore it from the repository")
        return files


def engine_environment(paths: Paths, progress: Progress, wanted: EngineRequirements) -> Path:
    """The environment's directory, built when its requirements changed."""
    key = digest(
        wanted.requirements.read_bytes(),
        wanted.overrides.read_bytes(),
        system_python_version(),
        _INSPECTION.read_bytes(),
    )

    def make(target: Path) -> None:
        uv = find_uv()
        with progress.step("installing vLLM for the CPU (about 6 GB)"):
            run([uv, "venv", "--quiet", "--python", SYSTEM_PYTHON, "--allow-existing", target])
            python = target / "bin" / "python3"
            install: list[str | Path] = [uv, "pip", "install", "--quiet", "--python", python]
            run([*install, "-r", wanted.requirements, "--overrides", wanted.overrides])
        with progress.step("compiling the engine environment"):
            # Halves the engine's start: pods mount it read-only and cannot do it.
            compile_python(python, [target / "lib"])
        with progress.step("having vLLM look into the model's class"):
            cache = target / VLLM_CACHE
            environment = system_environment(VLLM_CACHE_ROOT=str(cache), VLLM_NO_USAGE_STATS="1")
            run([python, _INSPECTION], environment=environment)
            make_readable(cache)

    directory = cached_directory(paths, "engine", key, make)
    point(paths.engine, directory)
    return directory
