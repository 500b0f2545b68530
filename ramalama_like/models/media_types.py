"""What the media types of models say: the CNCF's ModelPack, Docker's models, Ollama's, and plain names of files. Pure.

ModelPack: github.com/modelpack/model-spec, docs/spec.md; Docker's: what ``docker model push`` writes. Layers of any
other type are judged by the name of their file, as podman and ORAS write it into the title.
"""

from __future__ import annotations

from ramalama_like.listing import ADAPTER, LAYER, MODEL, OTHER, PROJECTOR, SHARD, TEMPLATE, WEIGHTS

MODELPACK = "application/vnd.cncf.model."
MODELPACK_MANIFEST = f"{MODELPACK}manifest.v1+json"
MODELPACK_CONFIG = f"{MODELPACK}config.v1+json"
MODELPACK_WEIGHT, MODELPACK_WEIGHT_CONFIG = f"{MODELPACK}weight.v1.raw", f"{MODELPACK}weight.config.v1.raw"
DOCKER_MODEL = "application/vnd.docker.ai."
OLLAMA_MODEL = "application/vnd.ollama.image."
# Annotations of layers that name a file, the one that counts most first.
FILE_NAMES = ("org.cncf.model.filepath", "org.opencontainers.image.title")
FILE_METADATA = "org.cncf.model.file.metadata+json"
# What a media type begins with -> role; empty: its file's name tells. The first that fits counts.
_ROLES = (
    (f"{MODELPACK}weight.config.", ""), (f"{MODELPACK}weight.", ""), (MODELPACK, OTHER),
    (f"{DOCKER_MODEL}gguf.v3.lora", ADAPTER), (f"{DOCKER_MODEL}gguf.lora", ADAPTER), (f"{DOCKER_MODEL}gguf", ""),
    (f"{DOCKER_MODEL}model.file.v1+gguf", ""), (f"{DOCKER_MODEL}mmproj", PROJECTOR),
    (f"{DOCKER_MODEL}chat.template", TEMPLATE), (f"{DOCKER_MODEL}safetensors", WEIGHTS),
    (f"{DOCKER_MODEL}model.file", ""), (DOCKER_MODEL, OTHER),
    (f"{OLLAMA_MODEL}model", MODEL), (f"{OLLAMA_MODEL}projector", PROJECTOR), (f"{OLLAMA_MODEL}adapter", ADAPTER),
    (f"{OLLAMA_MODEL}template", TEMPLATE), (OLLAMA_MODEL, OTHER),
)  # fmt: skip
_ENDINGS = {".jinja": TEMPLATE, ".jinja2": TEMPLATE, ".j2": TEMPLATE, ".safetensors": WEIGHTS}


def is_model_type(media_type: str) -> bool:
    """Whether a media type is one of those that only models have."""
    return media_type.startswith((MODELPACK, DOCKER_MODEL, OLLAMA_MODEL))


def role_of(media_type: str, name: str) -> str:
    """The role of a layer's file, as in ``listing.py``."""
    if media_type.partition("+")[0].endswith((".tar", "-tar")) and is_model_type(media_type):
        return LAYER if ".weight.v" in media_type else OTHER
    role = next((role for begin, role in _ROLES if media_type.startswith(begin)), "")
    return role or role_of_name(name)


def role_of_name(name: str) -> str:
    """The role that the name of a file tells."""
    lower = name.lower().rpartition("/")[2]
    if lower.endswith(".gguf"):
        if "mmproj" in lower:
            return PROJECTOR
        ending = lower[-len("-00001-of-00001.gguf") :]
        number = ending[1:6]
        later = ending[:1] == "-" and ending[6:10] == "-of-" and number.isdigit() and int(number) > 1
        return SHARD if later else MODEL
    if lower in ("chat_template", "template"):
        return TEMPLATE
    return _ENDINGS.get(f".{lower.rpartition('.')[2]}", OTHER)
