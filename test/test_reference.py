"""Names of models: exact examples, and no text that makes the parser stumble."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ramalama_like.errors import ValueProblem
from ramalama_like.reference import DEMO, PREFIXES, Reference, parse_reference, plain_url

EXACT = {
    "demo": ("demo", "demo"),
    "./demo": ("file", "./demo"),
    "demos": ("name", "demos"),
    "smollm:135m": ("name", "smollm:135m"),
    "granite3.1-dense": ("name", "granite3.1-dense"),
    "model.gguf": ("file", "model.gguf"),
    "MODEL.GGUF": ("file", "MODEL.GGUF"),
    "some/model.gguf": ("file", "some/model.gguf"),
    "./m": ("file", "./m"),
    "../m": ("file", "../m"),
    "/m": ("file", "/m"),
    "~/m": ("file", "~/m"),
    ".": ("file", "."),
    "..": ("file", ".."),
    "owner/model": ("huggingface", "owner/model"),
    "hf://owner/model": ("huggingface", "owner/model"),
    "hf://owner/model/file.gguf": ("huggingface", "owner/model/file.gguf"),
    "huggingface://owner/model:Q4_K_M": ("huggingface", "owner/model:Q4_K_M"),
    "https://huggingface.co/owner/model": ("huggingface", "owner/model"),
    "hf.co/owner/model": ("huggingface", "owner/model"),
    "ms://owner/model": ("modelscope", "owner/model"),
    "modelscope://owner/model": ("modelscope", "owner/model"),
    "ollama://tinyllama": ("ollama", "tinyllama"),
    "ollama.com/library/tinyllama": ("ollama", "tinyllama"),
    "https://ollama.com/library/tinyllama:1b": ("ollama", "tinyllama:1b"),
    "https://ollama.com/owner/model": ("ollama", "owner/model"),
    "oci://quay.io/owner/model:latest": ("oci", "quay.io/owner/model:latest"),
    "docker://quay.io/owner/model": ("oci", "quay.io/owner/model"),
    "rlcr://granite": ("rlcr", "granite"),
    "openai://gpt": ("openai", "gpt"),
    "http://example.org/m.gguf": ("http", "example.org/m.gguf"),
    "https://example.org/m.gguf": ("https", "example.org/m.gguf"),
    "file:///m": ("file", "/m"),
    "file:/m": ("file", "/m"),
    "file:m": ("file", "m"),
    "file://localhost/m": ("file", "/m"),
    "file:///a%20b%2525.gguf": ("file", "/a b%25.gguf"),
    "file:///%zz%": ("file", "/%zz%"),
    "file:///%ff": ("file", "/\udcff"),
    "hf:/x": ("huggingface", "hf:/x"),
    "HF://Owner/Model": ("huggingface", "Owner/Model"),
    "Https://HuggingFace.co/owner/model": ("huggingface", "owner/model"),
    "HTTP://Example.org/M.gguf": ("http", "Example.org/M.gguf"),
    "FILE:///M": ("file", "/M"),
}
REFUSED = {
    "": ("the model's name is empty", "give a path to a GGUF file, or 'demo'"),
    " \n": ("the model's name is empty", "give a path to a GGUF file, or 'demo'"),
    "a\0b": ("a model's name cannot hold a NUL character", ""),
    "file://": ("file://: a path must follow file:", "write file:///PATH"),
    "file:": ("file:: a path must follow file:", "write file:///PATH"),
    "file:///": ("file:///: a path must follow file:", "write file:///PATH"),
    "file://there/m": ("file://there/m: a file on another host cannot be opened", "write file:///PATH"),
    "ftp://host/m.gguf": (
        "ftp://host/m.gguf: models cannot be had from ftp:// addresses",
        "use https://, hf://, ollama:// or oci://; a file of such a name is written ./NAME",
    ),
    "file:///a%00b": ("a model's name cannot hold a NUL character", ""),
}


@pytest.mark.parametrize("text", EXACT)
def test_exact_references(text: str) -> None:
    assert parse_reference(text) == Reference(text, *EXACT[text])


@pytest.mark.parametrize("text", [*REFUSED, *(prefix for prefix, _ in PREFIXES)])
def test_exact_refusals(text: str) -> None:
    with pytest.raises(ValueProblem) as caught:
        parse_reference(text)
    expected = REFUSED.get(text, (f"{text}: a name must follow {text}", ""))
    assert (caught.value.message, caught.value.hint, caught.value.exit_code) == (*expected, 22)


@given(st.one_of(
    st.text(),
    st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")),
    st.builds("{}{}".format, st.sampled_from([*(prefix for prefix, _ in PREFIXES), "file:", "file://"]), st.text()),
))  # fmt: skip
@example("file://%")
@example("file://[")
@example("https://[")
def test_any_text_is_a_reference_or_refused(text: str) -> None:
    try:
        reference = parse_reference(text)
    except ValueProblem as problem:
        assert problem.exit_code == 22
        return
    known = {"file", "demo", "name", *(transport for _, transport in PREFIXES)}
    assert reference.text in (text, plain_url(text))
    assert reference.transport in known
    assert reference.name != ""
    assert "\0" not in reference.name
    assert (reference.transport == "demo") == (text == DEMO)


@given(st.text("ab/ %?#é:.", min_size=1))
def test_a_file_url_leads_to_its_path(path: str) -> None:
    assert parse_reference(f"file:///{quote(path)}") == Reference(f"file:///{quote(path)}", "file", f"/{path}")


@given(st.sampled_from(PREFIXES), st.text("abc:.-_", min_size=1))
def test_a_prefix_decides(row: tuple[str, str], name: str) -> None:
    # Only a longer prefix could claim it, and none of them has more than these letters.
    assert parse_reference(row[0] + name) == Reference(row[0] + name, row[1], name)
