"""Ollama's registry for tests: manifests in its own form."""

from __future__ import annotations

from typing import Any

from hubs.registry import FakeRegistry

KIND = "application/vnd.ollama.image."
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"


class OllamaRegistry(FakeRegistry):
    """``add_model("library/tiny", "latest", model=b"GGUF…", template=b"{{ .Prompt }}")``"""

    def add_model(self, repository: str, tag: str, **parts: bytes) -> str:
        """A model of these parts, by the ends of their media types; the manifest's digest."""
        layers = [self.layer(KIND + name, body) for name, body in parts.items()]
        document: dict[str, Any] = {
            "schemaVersion": 2, "mediaType": MANIFEST, "config": self.layer(CONFIG, b"{}"), "layers": layers,
        }  # fmt: skip
        return self.add_manifest(repository, tag, document, MANIFEST)
