"""Stores of other programs as these make them, each with the files that it is told to hold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write(path: Path, data: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def huggingface(
    hub: Path, repository: str, files: Mapping[str, bytes], commit: str = COMMIT, branch: str = "main"
) -> Path:
    """Blobs by their hash, and links to them from the snapshot of a commit."""
    top = hub / f"models--{repository.replace('/', '--')}"
    snapshot = top / "snapshots" / commit
    for name, data in files.items():
        write(top / "blobs" / digest_of(data), data)
        link = snapshot / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to("../" * (2 + name.count("/")) + f"blobs/{digest_of(data)}")
    if branch:
        write(top / "refs" / branch, commit)
    return snapshot


def ollama(models: Path, name: str, layers: Mapping[str, bytes], host: str = "registry.ollama.ai") -> Path:
    """A manifest below the host, and its layers; ``name`` is owner/model:tag."""
    repository, _, tag = name.partition(":")
    described = []
    for kind, data in layers.items():
        write(models / "blobs" / f"sha256-{digest_of(data)}", data)
        described.append({"mediaType": f"application/vnd.ollama.image.{kind}", "digest": f"sha256:{digest_of(data)}",
                          "size": len(data)})  # fmt: skip
    manifest = {"schemaVersion": 2, "layers": described}
    return write(models / "manifests" / host / repository / tag, json.dumps(manifest))


def ramalama(store: Path, below: str, tag: str, files: Mapping[str, tuple[str, bytes]], *, old: bool = False) -> Path:
    """A reference, its snapshot and the blobs that this links to, as version 0.24 writes them (or an older one)."""
    top = store / "store" / below
    first = next(iter(files.values()))[1]
    number = f"sha256-{digest_of(first)}"
    described = []
    for name, (kind, data) in files.items():
        blob = write(top / "blobs" / f"sha256-{digest_of(data)}", data)
        entry = top / "snapshots" / number / name
        entry.parent.mkdir(parents=True, exist_ok=True)
        entry.hardlink_to(blob)
        described.append({"hash": f"sha256-{digest_of(data)}", "name": name, "type": kind})
    if old:
        lines = [number, *(f"{each['name']}---{each['type']}" for each in described)]
        return write(top / "refs" / tag, "\n".join(lines))
    reference = {"files": described, "hash": f"sha256:{digest_of(first)}", "path": str(top / "refs" / f"{tag}.json"),
                 "version": "v1.0.1"}  # fmt: skip
    return write(top / "refs" / f"{tag}.json", json.dumps(reference))


def llama_cpp(cache: Path, repository: str, tag: str, model: str, data: bytes, projector: str = "") -> None:
    """Flat files with their ETags, and the manifest of a name."""
    manifest: dict[str, object] = {"ggufFile": {"rfilename": model}}
    flat = repository.replace("/", "_")
    write(cache / f"{flat}_{model.replace('/', '_')}", data)
    write(cache / f"{flat}_{model.replace('/', '_')}.etag", '"x"')
    if projector:
        manifest["mmprojFile"] = {"rfilename": projector}
        write(cache / f"{flat}_{projector}", data)
    write(cache / f"manifest={repository.replace('/', '=')}={tag}.json", json.dumps(manifest))


def lm_studio(models: Path, repository: str, files: Mapping[str, bytes]) -> None:
    """Files in a folder for each repository."""
    for name, data in files.items():
        write(models / repository / name, data)
