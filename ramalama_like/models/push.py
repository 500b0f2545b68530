"""Putting a model into a registry: as an artifact of the CNCF's ModelPack, or as an image with files below /models.

Both are made here, without an engine, and straight from the files: nothing is copied or packed first. The same model
always gives the same bytes, so what a registry has is not sent again. The image has RamaLama's layout: each file at
``/models/NAME/FILE``, and links with fixed names (``/models/model.file``) to them; its layers are plain tar, since
weights do not get smaller by packing. An image of the kind "car" lies on another image, which gives it a shell.
"""

from __future__ import annotations

import os

from ramalama_like.errors import ValueProblem
from ramalama_like.listing import MODEL, PROJECTOR, SHARD, TEMPLATE
from ramalama_like.models.disk import disk_problem
from ramalama_like.models.media_types import (
    FILE_NAMES,
    MODELPACK_CONFIG,
    MODELPACK_MANIFEST,
    MODELPACK_WEIGHT,
    MODELPACK_WEIGHT_CONFIG,
)
from ramalama_like.models.pieces import Pieces
from ramalama_like.models.registry import OCI_MANIFEST, architecture, digest_of
from ramalama_like.models.upload import put_blob, put_manifest
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ramalama_like.models.registry import Manifest, Registry

IMAGE_LAYER = "application/vnd.oci.image.layer.v1.tar"
IMAGE_CONFIG = "application/vnd.oci.image.config.v1+json"
KIND_LABEL = "org.containers.type"
_LINKS = {MODEL: "model.file", PROJECTOR: "mmproj.file", TEMPLATE: "chat_template.file"}
_BLOCK = 512  # of a tar archive


@value
class PushFile:
    """A file of the model: where it lies, and its digest where that is known already."""

    role: str
    name: str
    path: str
    digest: str = ""


@value
class Pushed:
    """What has happened: the digest that names it for ever, and how much had to be sent."""

    digest: str
    size_bytes: int
    sent_bytes: int


class Pusher:
    """Puts one model into one repository. ``progress`` is told the name of a file and the bytes of it so far."""

    def __init__(self, registry: Registry, tag: str, progress: Callable[[str, int, int], None] | None = None) -> None:
        self.registry = registry
        self.tag = tag
        self._progress = progress
        self._size = 0
        self._sent = 0

    def artifact(self, files: Sequence[PushFile], about: Mapping[str, object]) -> Pushed:
        """Push an artifact; ``about`` says what a ModelPack's configuration has below "config". Raises AppError."""
        layers = []
        for file in files:
            weights = file.role != TEMPLATE
            described = self._blob(file.name, [file.path], file.digest)
            layers.append({
                "mediaType": MODELPACK_WEIGHT if weights else MODELPACK_WEIGHT_CONFIG, **described,
                "annotations": dict.fromkeys(FILE_NAMES, file.name),
            })  # fmt: skip
        config = {
            "descriptor": {"name": self.registry.repository.rpartition("/")[2]},
            "modelfs": {"type": "layers", "diffIds": [layer["digest"] for layer in layers]},
            "config": dict(about),
        }
        return self._finish({"artifactType": MODELPACK_MANIFEST}, MODELPACK_CONFIG, config, layers)

    def image(self, files: Sequence[PushFile], kind: str, base: tuple[Registry, Manifest] | None = None) -> Pushed:
        """Push an image of the ``kind`` raw, or car, which lies on the image ``base``. Raises AppError."""
        config, layers = self._of_base(base)
        folder = f"models/{self.registry.repository.rpartition('/')[2]}"
        for file in files:
            pieces: list[bytes | str] = [_folders(folder), *_tar_file(f"{folder}/{file.name}", file.path)]
            if file.role in _LINKS:
                pieces.append(_tar_head(f"models/{_LINKS[file.role]}", 0, b"2", 0o777, f"{folder[7:]}/{file.name}"))
            described = self._blob(file.name, [*pieces, bytes(2 * _BLOCK)])
            layers.append({"mediaType": IMAGE_LAYER, **described})
            config["rootfs"]["diff_ids"].append(described["digest"])
            config["history"].append({"created_by": f"COPY {file.name} /{folder}/", "comment": "ramalama-like"})
        config["config"].setdefault("Labels", {})
        config["config"]["Labels"] = {**config["config"]["Labels"], KIND_LABEL: f"ai.image.model.{kind}"}
        return self._finish({}, IMAGE_CONFIG, config, layers)

    # Within.

    def _of_base(self, base: tuple[Registry, Manifest] | None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        if base is None:
            return {"architecture": architecture(), "os": "linux", "config": {},
                    "rootfs": {"type": "layers", "diff_ids": []}, "history": []}, []  # fmt: skip
        import json

        source, manifest = base
        document: Any = manifest.document
        layers = []
        for layer in source.layers(manifest):
            self._carry(source, layer.digest, layer.size_bytes)
            kind = layer.media_type.replace("application/vnd.docker.image.rootfs.diff.tar.gzip", f"{IMAGE_LAYER}+gzip")
            layers.append({"mediaType": kind, "digest": layer.digest, "size": layer.size_bytes})
        try:
            config = json.loads(source.blob(document["config"]["digest"]))
            if len(config["rootfs"]["diff_ids"]) != len(layers):
                raise ValueError
            config["config"], config["history"] = config.get("config") or {}, config.get("history") or []
        except (ValueError, KeyError, TypeError):
            raise ValueProblem(f"{source.name}: cannot be built upon: it has no usable configuration",
                               "name another image with --carimage, or push with --type raw") from None  # fmt: skip
        return config, layers

    def _carry(self, source: Registry, digest: str, size: int) -> None:
        """Have a layer of another repository in this one; it passes through a file without a name."""
        from tempfile import TemporaryDirectory

        from ramalama_like.listing import RemoteFile
        from ramalama_like.models.blob_stream import BlobStream
        from ramalama_like.models.upload import has_blob

        if has_blob(self.registry, digest):
            self._size += size
            return
        with TemporaryDirectory(prefix="ramalama-like-") as folder:
            path = os.path.join(folder, "layer")
            remote = RemoteFile("layer", source.blob_url(digest), size, digest[7:])
            with (
                BlobStream(source.client, remote, source.keep_fresh(), lambda _: None) as stream,
                open(path, "wb") as file,
            ):
                while piece := stream.read():
                    file.write(piece)
                stream.finish()
            same = source.repository if source.host == self.registry.host else ""
            self._blob(source.name, [path], digest, same)

    def _blob(self, name: str, parts: Sequence[bytes | str], digest: str = "", mount_from: str = "") -> dict[str, Any]:
        """Have the bytes in the registry; what a manifest says about them."""
        try:
            pieces = Pieces(parts)
        except OSError as error:
            raise ValueProblem(f"{name}: cannot be read: {error.strerror}", "pull the model again") from None
        try:
            found = digest or pieces.digest()
            if self._progress is not None:
                pieces.watch(lambda place: self._progress(name, place, pieces.size) if self._progress else None)
            if put_blob(self.registry, pieces, found, mount_from=mount_from):
                self._sent += pieces.size
        except ValueError as error:
            raise ValueProblem(f"{name}: {error}", "try again") from None
        except OSError as error:
            raise disk_problem(name, error) from None
        finally:
            pieces.close()
        self._size += pieces.size
        return {"digest": found, "size": pieces.size}

    def _finish(self, more: Mapping[str, str], config_type: str, config: Mapping[str, Any],
                layers: Sequence[Mapping[str, Any]]) -> Pushed:  # fmt: skip
        import json

        body = json.dumps(config, separators=(",", ":")).encode()
        described = self._blob("the configuration", [body], digest_of(body))
        manifest = {"schemaVersion": 2, "mediaType": OCI_MANIFEST, **more,
                    "config": {"mediaType": config_type, **described}, "layers": list(layers)}  # fmt: skip
        digest = put_manifest(
            self.registry, self.tag, json.dumps(manifest, separators=(",", ":")).encode(), OCI_MANIFEST
        )
        return Pushed(digest, self._size, self._sent)


def push_order(files: Sequence[PushFile]) -> tuple[PushFile, ...]:
    """The files with the weights first, each under a name of its own. Raises ValueProblem where two share one."""
    order = (MODEL, SHARD, PROJECTOR, TEMPLATE)
    ranked = sorted(files, key=lambda file: (order.index(file.role) if file.role in order else len(order), file.name))
    names = [file.name for file in ranked]
    for name in names:
        if names.count(name) > 1:
            raise ValueProblem(f"two files of the model have the name {name}", "rename one of them")
    return tuple(ranked)


def _folders(folder: str) -> bytes:
    parts = folder.split("/")
    return b"".join(_tar_head(f"{'/'.join(parts[:count])}/", 0, b"5", 0o755) for count in range(1, len(parts) + 1))


def _tar_file(name: str, path: str) -> list[bytes | str]:
    """The pieces of a file in a tar archive: its header, itself, and what fills the last block."""
    try:
        size = os.stat(path).st_size
    except OSError as error:
        raise ValueProblem(f"{path}: cannot be read: {error.strerror}", "pull the model again") from None
    return [_tar_head(name, size, b"0", 0o644), path, bytes(-size % _BLOCK)]


def _tar_head(name: str, size: int, kind: bytes, mode: int, link: str = "") -> bytes:
    """A header without owner and time, so that the same files always give the same archive."""
    from tarfile import PAX_FORMAT, TarInfo

    member = TarInfo(name)
    member.size, member.type, member.mode, member.linkname = size, kind, mode, link
    return member.tobuf(PAX_FORMAT)
