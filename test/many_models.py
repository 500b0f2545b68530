"""A store of thousands of models, and a model with a header as long as the longest in use."""

from __future__ import annotations

import os
import time
from pathlib import Path

import gguf
import numpy as np

from ramalama_like.models.record_files import record_to_bytes
from ramalama_like.models.store import Store
from ramalama_like.record import Record, StoredFile


def write_many_models(root: Path, count: int) -> Path:
    """Records of models; their blobs are not there, since nobody looks at them."""
    store = Store(str(root))
    folder = Path(store.folder) / "refs"
    folder.mkdir(parents=True)
    for number in range(count):
        file = StoredFile("model", f"model-{number}-Q4_K_M.gguf", 10**9 + number, sha256=f"{number:064x}")
        name = f"hf://owner-{number % 50}/model-{number}-GGUF:Q4_K_M"
        record = Record(name, (file,), 1.7e9 + 1000 * number, "0123456789" * 4)
        Path(store.record_path(name)).write_bytes(record_to_bytes(record))
    # As old as a folder is that nobody has just changed: an index of it may be kept.
    os.utime(folder, (time.time() - 60, time.time() - 60))
    return root


def write_big_header(path: Path, *, tokens: int, tensors: int) -> Path:
    """A GGUF file of this many tokens and tensors, and hardly any data."""
    out = gguf.GGUFWriter(path, "llama")
    out.add_size_label("7B")
    out.add_context_length(131072)
    out.add_token_list([f"token-{number}" for number in range(tokens)])
    out.add_token_scores([0.0] * tokens)
    out.add_token_types([1] * tokens)
    for number in range(tensors):
        out.add_tensor(f"blk.{number}.weight", np.zeros((32,), np.float32))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return path
