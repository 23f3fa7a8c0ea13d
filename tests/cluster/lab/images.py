"""The images of the lab and of the product, built without a registry."""

from dataclasses import replace
from pathlib import Path

from .cache import digest
from .layers import SITE, SOURCES, base_layer, packages_layer, pause_layer, sources_layer
from .oci import Image, Layer
from .paths import Paths
from .progress import Progress

PAUSE = "localhost/headway-lab/pause:1"
ENGINE = "localhost/headway-lab/engine:1"
_ALIAS = "dev"

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PRODUCT_USER = "65532:65532"


def pause_image(paths: Paths, progress: Progress) -> Image:
    """The sandbox image; the kubelet collects no images here, so it stays."""
    return Image((PAUSE,), (pause_layer(paths, progress),), {"Entrypoint": ["/pause"]})


def engine_image(paths: Paths, progress: Progress) -> Image:
    """Stands for the user's vLLM image: its environment is mounted at /opt/engine.

    Like most such images it has no entry in /etc/passwd for the user that the pod sets.
    """
    settings = {"Env": [f"PATH=/opt/engine/bin:{_SYSTEM_PATH}"], "Cmd": ["python3"]}
    return Image((ENGINE,), (base_layer(paths, progress),), settings)


def product_images(paths: Paths, progress: Progress, repository: Path) -> dict[str, Image]:
    """The images of operator, runtime and router, from a checkout.

    Each has two names: a tag that is a hash of all it contains, and `dev`, the newest.
    """
    runtime = repository / "runtime" / "headway_runtime"
    operator = repository / "operator" / "headway_operator"
    return {
        "operator": _product_image(
            "operator",
            (
                base_layer(paths, progress),
                packages_layer(paths, progress, repository / "requirements" / "operator.txt"),
                sources_layer(paths, progress, "operator", (operator, runtime)),
            ),
            "headway_operator.main",
        ),
        "runtime": _product_image(
            "runtime",
            (
                base_layer(paths, progress),
                packages_layer(paths, progress, repository / "requirements" / "runtime.txt"),
                sources_layer(paths, progress, "runtime", (runtime,)),
            ),
            "headway_runtime.sidecar",
        ),
        "router": _product_image(
            "router",
            (
                base_layer(paths, progress),
                packages_layer(paths, progress, repository / "requirements" / "router.txt"),
            ),
            "vllm_router.launch_router",
        ),
    }


def _product_image(name: str, layers: tuple[Layer, ...], module: str) -> Image:
    environment = {
        "PATH": _SYSTEM_PATH,
        "PYTHONPATH": f"/{SOURCES}:/{SITE}",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    settings = {
        "Env": [f"{key}={value}" for key, value in environment.items()],
        "Entrypoint": ["python3", "-m", module],
        "User": _PRODUCT_USER,
    }
    image = Image((), layers, settings)
    repository = f"localhost/headway/{name}"
    return replace(image, names=(f"{repository}:{digest(image.digest)}", f"{repository}:{_ALIAS}"))
