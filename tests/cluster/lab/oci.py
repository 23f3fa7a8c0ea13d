"""Container images in plain Python: layers from directories, and an OCI archive of images.

Deterministic: a layer's digest depends on names, modes, links and contents alone, so an unchanged
source gives an unchanged image.
Format: https://github.com/opencontainers/image-spec (image layout 1.0.0, uncompressed layers).
"""

import hashlib
import io
import json
import os
import platform
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

_MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
_CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
_LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Layer:
    """A layer: an uncompressed tar file and its digest (sha256:...)."""

    tar: Path
    digest: str


@dataclass(frozen=True)
class Image:
    """An image under one or more names (registry/path:tag)."""

    names: tuple[str, ...]
    layers: tuple[Layer, ...]
    # Members of the OCI configuration's "config": Env, Entrypoint, User ...
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> bytes:
        """The OCI configuration."""
        machine = platform.machine()
        return _json(
            {
                "architecture": _ARCHITECTURES.get(machine, machine),
                "os": "linux",
                "config": dict(self.settings),
                "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in self.layers]},
            }
        )

    @property
    def manifest(self) -> bytes:
        """The OCI manifest."""
        layers = [
            _descriptor(_LAYER_TYPE, layer.digest, layer.tar.stat().st_size)
            for layer in self.layers
        ]
        return _json(
            {
                "schemaVersion": 2,
                "mediaType": _MANIFEST_TYPE,
                "config": _descriptor(_CONFIG_TYPE, _digest(self.config), len(self.config)),
                "layers": layers,
            }
        )

    @property
    def digest(self) -> str:
        """What identifies the image: the digest of its manifest."""
        return _digest(self.manifest)


def write_layer(root: Path, target: Path) -> Layer:
    """Write all that is below `root` as a layer, and its digest beside it.

    Owner is root, time is zero; devices and sockets are left out.
    """
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as archive:
        for path in _tree(root):
            member = _member(archive, root, path)
            if member.isreg():
                with path.open("rb") as content:
                    archive.addfile(member, content)
            elif member.isdir() or member.issym() or member.islnk():
                archive.addfile(member)
    layer = Layer(target, _file_digest(target))
    _digest_file(target).write_text(layer.digest)
    return layer


def read_layer(tar: Path) -> Layer:
    """A layer that `write_layer` wrote before."""
    return Layer(tar, _digest_file(tar).read_text())


def _digest_file(tar: Path) -> Path:
    return tar.with_suffix(".sha256")


def _tree(root: Path) -> Iterator[Path]:
    for directory, names, files in os.walk(root):
        names.sort()
        # Symbolic links to directories are among the names, and walk does not follow them.
        yield from (Path(directory, name) for name in sorted([*names, *files]))


def _member(archive: tarfile.TarFile, root: Path, path: Path) -> tarfile.TarInfo:
    member = archive.gettarinfo(path, str(path.relative_to(root)))
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member


def write_archive(images: Iterable[Image], out: IO[bytes]) -> None:
    """Write images as one OCI archive; layers that they share are written once."""
    images = list(images)
    layers = {layer.digest: layer.tar for image in images for layer in image.layers}
    documents = {_digest(data): data for image in images for data in (image.config, image.manifest)}
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.GNU_FORMAT) as archive:
        _add(archive, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
        for digest, tar in layers.items():
            with tar.open("rb") as content:
                _add_stream(archive, _blob(digest), content, tar.stat().st_size)
        for digest, data in documents.items():
            _add(archive, _blob(digest), data)
        _add(archive, "index.json", _index(images))


def _index(images: Iterable[Image]) -> bytes:
    manifests = [
        {
            **_descriptor(_MANIFEST_TYPE, image.digest, len(image.manifest)),
            "annotations": {
                "io.containerd.image.name": name,
                "org.opencontainers.image.ref.name": name.rpartition(":")[2],
            },
        }
        for image in images
        for name in image.names
    ]
    return _json({"schemaVersion": 2, "manifests": manifests})


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    _add_stream(archive, name, io.BytesIO(data), len(data))


def _add_stream(archive: tarfile.TarFile, name: str, content: IO[bytes], size_bytes: int) -> None:
    member = tarfile.TarInfo(name)
    member.size = size_bytes
    member.mode = 0o644
    archive.addfile(member, content)


def _blob(digest: str) -> str:
    return "blobs/" + digest.replace(":", "/")


def _descriptor(media_type: str, digest: str, size_bytes: int) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": digest, "size": size_bytes}


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def _digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _file_digest(path: Path) -> str:
    whole = hashlib.sha256()
    with path.open("rb") as content:
        while chunk := content.read(_CHUNK_BYTES):
            whole.update(chunk)
    return "sha256:" + whole.hexdigest()
