"""Finding models. ``resolve_model`` is the only entrance; each source is a sibling below ``sources/``.

A source has ``resolve(reference) -> Model``. In this version there are files on this machine and the demo model; the
names of the hubs are understood, and shown in a dry run, but cannot be fetched yet.
"""

from __future__ import annotations

import os.path

from ramalama_like.checks import with_home
from ramalama_like.model import Model, ModelFile
from ramalama_like.reference import Reference, parse_reference
from ramalama_like.value import replace

_HUBS = {"huggingface": "Hugging Face", "modelscope": "ModelScope", "ollama": "Ollama", "oci": "a registry",
         "rlcr": "a registry", "openai": "a hosted service", "http": "the web", "https": "the web"}  # fmt: skip


def resolve_model(text: str, store: str, home: str = "") -> Model:
    """Find a model by its name. ``store`` is the folder of pulled models, ``home`` what ``~`` stands for.

    A model that cannot be had gives a ``Model`` with ``problem`` set, at the path that it would have; a file that is
    there but unusable, or a path that leads nowhere, raises ValueProblem.
    """
    from ramalama_like.models.sources import file

    reference = parse_reference(text)
    if home and reference.transport == "file":
        reference = replace(reference, name=with_home(reference.name, home))
    if reference.transport == "demo":
        return file.resolve_demo()
    # A name without a prefix may be that of a file here; one with a prefix says where it is to be had.
    if reference.transport == "file" or (reference.name == reference.text and os.path.exists(reference.name)):
        return file.resolve(reference)
    return _unresolved(reference, store)


def _unresolved(reference: Reference, store: str) -> Model:
    name = reference.name
    path = os.path.join(store, "models", reference.transport, *_safe_parts(name), "model.gguf")
    alias = name.rstrip("/").rpartition("/")[2].partition(":")[0] or "model"
    files = (ModelFile("model", path, "model.gguf"),)
    hint = "give the path of a GGUF file, or 'demo', the model that comes with this program"
    if reference.transport == "name":
        problem, code = f"{reference.text}: no file and no known model has this name", 22
    else:
        problem = f"{reference.text}: models from {_HUBS[reference.transport]} cannot be pulled by this version"
        code = 38
    return Model(reference=reference.text, alias=alias, files=files, why="the name has not been resolved",
                 problem=problem, hint=hint, exit_code=code)  # fmt: skip


def _safe_parts(name: str) -> list[str]:
    # A name from outside must not lead out of the store.
    return [part for part in name.split("/") if part not in ("", ".", "..")] or ["unnamed"]
