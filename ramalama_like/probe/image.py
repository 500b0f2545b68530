"""What exactly the engine has under the name of an image."""

from __future__ import annotations

from ramalama_like.errors import AppError
from ramalama_like.process import capture

LONGEST_ANSWER_S = 10.0


def ask_image_identity(program: str, ref: str) -> tuple[str, str]:
    """The digest of an image's manifest and that of its configuration (its id), both as ``sha256:…``.

    The first is empty where no registry has ever seen the image and the engine is docker; both are empty where the
    engine does not tell.
    """
    from json import loads

    try:
        done = capture((program, "image", "inspect", "--format", '[{{json .RepoDigests}}, "{{.Id}}"]', ref),
                       LONGEST_ANSWER_S)  # fmt: skip
        found = loads(done.stdout) if not done.code else None
    except (AppError, ValueError, RecursionError):
        return "", ""
    if not isinstance(found, list) or len(found) != 2:
        return "", ""
    listed = [text.partition("@") for text in found[0] or () if isinstance(text, str)]
    name = ref.partition("@")[0]
    repository = name if ":" not in name.rpartition("/")[2] else name.rpartition(":")[0]
    own = [digest for where, _, digest in listed if where == repository] or [digest for _, _, digest in listed]
    image_id = str(found[1])
    return own[0] if own else "", f"sha256:{image_id}" if image_id and ":" not in image_id else image_id
