"""The layers that the lab's images are made of, each in the cache under a hash of its inputs."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from .cache import cached_directory, digest, digest_files
from .commands import find_executable, run
from .errors import LabError
from .mounts import remove_tree
from .oci import Layer, read_layer, write_layer
from .paths import CLUSTER_DIRECTORY, Paths
from .progress import Progress
from .python_tools import SYSTEM_PYTHON, compile_python, find_uv, system_python_version

SITE = "usr/lib/headway/site"  # third-party packages
SOURCES = "usr/lib/headway/src"  # our own

_SUITE = "bookworm"
# libnuma1 for vLLM: without it, '_C' has no attribute 'init_cpu_memory_env'.
_PACKAGES = ("python3", "ca-certificates", "libnuma1")
_STRIPPED = (
    *("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/lintian"),
    *("var/cache/apt", "var/lib/apt/lists", "var/log", "debootstrap", "dev"),
    *("etc/resolv.conf", "etc/hostname", "etc/machine-id", "var/cache/debconf"),
)
_PAUSE_SOURCE = CLUSTER_DIRECTORY / "images" / "pause.c"
# Names the way layers are made: raise it when that changes what is in them.
_RECIPE = "1"


def pause_layer(paths: Paths, progress: Progress) -> Layer:
    """The program of the sandbox container."""

    def make(root: Path) -> None:
        gcc = find_executable("gcc", "apt-get install gcc libc6-dev")
        run([gcc, "-static", "-Os", "-s", "-o", root / "pause", _PAUSE_SOURCE])

    return _layer(paths, progress, "pause", digest(_PAUSE_SOURCE.read_bytes()), make)


def base_layer(paths: Paths, progress: Progress) -> Layer:
    """Debian with its Python and nothing else, without documents and locales."""

    def make(root: Path) -> None:
        debootstrap = find_executable("debootstrap", "apt-get install debootstrap")
        options = ["--variant=minbase", f"--include={','.join(_PACKAGES)}"]
        run([debootstrap, *options, _SUITE, root])
        for name in _STRIPPED:
            _remove(root / name)
        # Layers have no times, so compiled modules must not depend on those of their sources.
        _compile(SYSTEM_PYTHON, root, "usr/lib/python3", "usr/lib/python3.11")

    return _layer(paths, progress, "debian", digest(_SUITE, *_PACKAGES), make)


def packages_layer(paths: Paths, progress: Progress, requirements: Path) -> Layer:
    """Third-party packages of a requirements file, below SITE."""

    def make(root: Path) -> None:
        target = root / SITE
        install: list[str | Path] = [find_uv(), "pip", "install", "--quiet"]
        install += ["--no-deps", "--link-mode", "copy"]
        run([*install, "--python", SYSTEM_PYTHON, "--target", target, "-r", requirements])
        shutil.rmtree(target / "bin", ignore_errors=True)
        (target / ".lock").unlink(missing_ok=True)  # uv's own
        _compile(SYSTEM_PYTHON, root, SITE)

    key = digest(_require(requirements).read_bytes(), SITE, system_python_version())
    return _layer(paths, progress, f"packages-{requirements.stem}", key, make)


def sources_layer(paths: Paths, progress: Progress, name: str, packages: Sequence[Path]) -> Layer:
    """Our own Python packages (directories), below SOURCES."""

    def make(root: Path) -> None:
        for package in packages:
            ignored = shutil.ignore_patterns("__pycache__", ".*")
            shutil.copytree(package, root / SOURCES / package.name, ignore=ignored)
        _compile(SYSTEM_PYTHON, root, SOURCES)

    key = digest(SOURCES, *(_tree_digest(_require(package)) for package in packages))
    return _layer(paths, progress, f"sources-{name}", key, make)


def _layer(
    paths: Paths, progress: Progress, name: str, key: str, make_root: Callable[[Path], None]
) -> Layer:
    def make(target: Path) -> None:
        with progress.step(f"making image layer {name}"):
            root = target / "root"
            root.mkdir()
            make_root(root)
            write_layer(root, target / "layer.tar")
            remove_tree(root)

    directory = cached_directory(paths, f"layer-{name}", digest(key, _RECIPE), make)
    return read_layer(directory / "layer.tar")


def _compile(python: Path, root: Path, *directories: str) -> None:
    options = ("--invalidation-mode", "unchecked-hash", "-f", "-s", str(root), "-p", "/")
    compile_python(python, [root / directory for directory in directories], *options)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        remove_tree(path)
    else:
        path.unlink(missing_ok=True)


def _tree_digest(package: Path) -> str:
    files = (
        file
        for file in package.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts and not file.name.startswith(".")
    )
    return digest(package.name, digest_files(package, files))


def _require(path: Path) -> Path:
    if not path.exists():
        raise LabError(f"{path} is missing: images are built from a complete checkout")
    return path
