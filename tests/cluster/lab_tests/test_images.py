import io
import json
import os
import tarfile
from pathlib import Path

from tests.cluster.lab.oci import Image, Layer, read_layer, write_archive, write_layer


def tree(root: Path) -> Path:
    (root / "b").mkdir(parents=True)
    (root / "b" / "program").write_text("#!/bin/sh\n")
    (root / "b" / "program").chmod(0o755)
    (root / "a").write_text("text")
    (root / "link").symlink_to("a")
    (root / "directory-link").symlink_to("b")
    return root


def test_the_same_tree_gives_the_same_layer_whatever_its_times_and_order(tmp_path: Path) -> None:
    one = write_layer(tree(tmp_path / "one"), tmp_path / "one.tar")
    other_root = tree(tmp_path / "other")
    os.utime(other_root / "a", (1, 1))
    (other_root / "a").rename(other_root / "z")
    (other_root / "z").rename(other_root / "a")
    other = write_layer(other_root, tmp_path / "other.tar")
    assert one.digest == other.digest


def test_a_layer_changes_with_content_mode_and_name(tmp_path: Path) -> None:
    root = tree(tmp_path / "root")
    digests = [write_layer(root, tmp_path / "0.tar").digest]
    (root / "a").write_text("test")
    digests.append(write_layer(root, tmp_path / "1.tar").digest)
    (root / "a").chmod(0o600)
    digests.append(write_layer(root, tmp_path / "2.tar").digest)
    (root / "a").rename(root / "c")
    digests.append(write_layer(root, tmp_path / "3.tar").digest)
    assert len(set(digests)) == 4


def test_a_layer_holds_files_directories_and_links_of_root(tmp_path: Path) -> None:
    layer = write_layer(tree(tmp_path / "root"), tmp_path / "layer.tar")
    with tarfile.open(layer.tar) as archive:
        members = {member.name: member for member in archive.getmembers()}
    assert list(members) == ["a", "b", "directory-link", "link", "b/program"]
    assert members["b/program"].mode == 0o755
    assert members["directory-link"].issym()
    assert {member.uid for member in members.values()} == {0}


def test_a_written_layer_can_be_read_again(tmp_path: Path) -> None:
    layer = write_layer(tree(tmp_path / "root"), tmp_path / "layer.tar")
    assert read_layer(tmp_path / "layer.tar") == layer


def test_an_archive_names_every_image_and_holds_shared_layers_once(tmp_path: Path) -> None:
    layer = write_layer(tree(tmp_path / "root"), tmp_path / "layer.tar")
    images = [
        Image(("localhost/one:1", "localhost/one:dev"), (layer,), {"User": "1"}),
        Image(("localhost/two:1",), (layer,), {"User": "2"}),
    ]
    out = io.BytesIO()
    write_archive(images, out)
    out.seek(0)
    with tarfile.open(fileobj=out) as archive:
        names = archive.getnames()
        index_file = archive.extractfile("index.json")
        assert index_file is not None
        index = json.load(index_file)
    assert names.count("blobs/" + layer.digest.replace(":", "/")) == 1
    found = {
        entry["annotations"]["io.containerd.image.name"]: entry["digest"]
        for entry in index["manifests"]
    }
    assert found == {name: image.digest for image in images for name in image.names}
    assert all("blobs/" + digest.replace(":", "/") in names for digest in found.values())


def test_an_image_is_identified_by_settings_and_layers_not_by_name(tmp_path: Path) -> None:
    layer = write_layer(tree(tmp_path / "root"), tmp_path / "layer.tar")
    image = Image(("localhost/one:1",), (layer,), {"User": "1"})
    assert Image(("localhost/two:2",), (layer,), {"User": "1"}).digest == image.digest
    assert Image(("localhost/one:1",), (layer,), {"User": "2"}).digest != image.digest
    other = Layer(layer.tar, "sha256:0")
    assert Image(("localhost/one:1",), (other,), {"User": "1"}).digest != image.digest
