"""Names of models: exact examples, one spelling for each model, and no text that makes the parser stumble."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ramalama_like.errors import ValueProblem
from ramalama_like.options import TRANSPORTS
from ramalama_like.reference import (
    DEMO,
    SCHEMES,
    WEB_HOSTS,
    Reference,
    alias_of,
    canonical_name,
    parse_reference,
    plain_url,
)

DIGEST = "sha256:" + "0123456789abcdef" * 4

# Text -> transport, canonical name.
NAMES = {
    "demo": ("demo", "demo"),
    "./demo": ("file", "file:./demo"),
    "demos": ("name", "demos"),
    "smollm:135m": ("name", "smollm:135m"),
    "model.gguf": ("file", "file:model.gguf"),
    "MODEL.GGUF": ("file", "file:MODEL.GGUF"),
    "some/model.gguf": ("file", "file:some/model.gguf"),
    "../m": ("file", "file:../m"),
    "/m": ("file", "file:///m"),
    "//m": ("file", "file:////m"),
    "/a b%é": ("file", "file:///a%20b%25%C3%A9"),
    "~/m": ("file", "file:~/m"),
    ".": ("file", "file:."),
    "file:///m": ("file", "file:///m"),
    "FILE:m": ("file", "file:m"),
    # Hugging Face
    "owner/model": ("huggingface", "hf://owner/model"),
    "owner/model/file.gguf": ("huggingface", "hf://owner/model/file.gguf"),
    "owner/model:q4_k_m": ("huggingface", "hf://owner/model:Q4_K_M"),
    "owner/model:latest": ("huggingface", "hf://owner/model"),
    "HF://owner/model/": ("huggingface", "hf://owner/model"),
    "huggingface://owner/model": ("huggingface", "hf://owner/model"),
    "hf://owner/model/sub/file.gguf": ("huggingface", "hf://owner/model/sub/file.gguf"),
    "hf://owner/model/sub:Q8_0": ("huggingface", "hf://owner/model/sub:Q8_0"),
    "hf://owner/model@v1/file.gguf": ("huggingface", "hf://owner/model@v1/file.gguf"),
    "hf://owner/model/file.gguf@v1": ("huggingface", "hf://owner/model@v1/file.gguf"),
    "hf://owner/model@v1:Q8_0": ("huggingface", "hf://owner/model@v1:Q8_0"),
    "hf://owner/model:Q8_0@v1": ("huggingface", "hf://owner/model@v1:Q8_0"),
    "hf://owner/model@main": ("huggingface", "hf://owner/model"),
    "hf://owner/model@refs/pr/1": ("huggingface", "hf://owner/model@refs%2Fpr%2F1"),
    "hf://owner/model@refs/pr/1/a.gguf": ("huggingface", "hf://owner/model@refs%2Fpr%2F1/a.gguf"),
    "hf.co/owner/model:Q4_0": ("huggingface", "hf://owner/model:Q4_0"),
    "hf.co/owner/model/file.gguf": ("huggingface", "hf://owner/model/file.gguf"),
    "https://huggingface.co/owner/model": ("huggingface", "hf://owner/model"),
    "http://hf.co/owner/model": ("huggingface", "hf://owner/model"),
    "HTTPS://HuggingFace.co/owner/model/tree/main": ("huggingface", "hf://owner/model"),
    "https://huggingface.co/owner/model/tree/v2/sub": ("huggingface", "hf://owner/model@v2/sub"),
    "https://huggingface.co/owner/model/blob/main/a%20b.gguf": ("huggingface", "hf://owner/model/a%20b.gguf"),
    "https://huggingface.co/o/m/resolve/main/a.gguf?download=true": ("huggingface", "hf://o/m/a.gguf"),
    "https://huggingface.co/o/m/resolve/refs%2Fpr%2F1/a.gguf": ("huggingface", "hf://o/m@refs%2Fpr%2F1/a.gguf"),
    "https://huggingface.co/o/m/blob/refs/pr/1/a.gguf": ("huggingface", "hf://o/m@refs%2Fpr%2F1/a.gguf"),
    "https://huggingface.co/o/m/commit/0a1b": ("huggingface", "hf://o/m@0a1b"),
    "https://huggingface.co/o/m/discussions/3": ("huggingface", "hf://o/m"),
    "https://huggingface.co/o/m?show_file_info=a.gguf#x": ("huggingface", "hf://o/m/a.gguf"),
    "https://huggingface.co/datasets/o/d/resolve/main/a.gguf": (
        "https", "https://huggingface.co/datasets/o/d/resolve/main/a.gguf",
    ),
    "ollama://hf.co/owner/model:Q4_0": ("huggingface", "hf://owner/model:Q4_0"),
    # ModelScope
    "ms://owner/model": ("modelscope", "modelscope://owner/model"),
    "modelscope://owner/model/a.gguf": ("modelscope", "modelscope://owner/model/a.gguf"),
    "https://modelscope.cn/models/o/m": ("modelscope", "modelscope://o/m"),
    "https://www.modelscope.cn/models/o/m/summary": ("modelscope", "modelscope://o/m"),
    "https://modelscope.cn/models/o/m/file/view/master/s/a.gguf?status=2": ("modelscope", "modelscope://o/m/s/a.gguf"),
    "https://modelscope.cn/models/o/m/resolve/v1/a.gguf": ("modelscope", "modelscope://o/m@v1/a.gguf"),
    "https://modelscope.cn/api/v1/models/o/m/repo?Revision=master&FilePath=a.gguf": (
        "modelscope", "modelscope://o/m/a.gguf",
    ),
    # Ollama
    "ollama://tinyllama": ("ollama", "ollama://tinyllama:latest"),
    "ollama://library/tinyllama:1b": ("ollama", "ollama://tinyllama:1b"),
    "ollama://owner/model": ("ollama", "ollama://owner/model:latest"),
    "ollama://localhost:5000/owner/model:1b": ("ollama", "ollama://localhost:5000/owner/model:1b"),
    f"ollama://tinyllama@{DIGEST}": ("ollama", f"ollama://tinyllama@{DIGEST}"),
    "ollama.com/library/tinyllama": ("ollama", "ollama://tinyllama:latest"),
    "https://ollama.com/library/tinyllama:1b": ("ollama", "ollama://tinyllama:1b"),
    "https://ollama.com/library/tinyllama/tags": ("ollama", "ollama://tinyllama:latest"),
    "https://ollama.com/owner/model": ("ollama", "ollama://owner/model:latest"),
    "registry.ollama.ai/library/tinyllama:1b": ("ollama", "ollama://tinyllama:1b"),
    # registries
    "oci://quay.io/owner/model": ("oci", "oci://quay.io/owner/model:latest"),
    "oci://Quay.IO/owner/model:1.0": ("oci", "oci://quay.io/owner/model:1.0"),
    f"oci://quay.io/model:1@{DIGEST}": ("oci", f"oci://quay.io/model@{DIGEST}"),
    "docker://ai/smollm2": ("oci", "oci://docker.io/ai/smollm2:latest"),
    "docker://index.docker.io/smollm2:1": ("oci", "oci://docker.io/library/smollm2:1"),
    "localhost/owner/model": ("oci", "oci://localhost/owner/model:latest"),
    "localhost:5000/model:a": ("oci", "oci://localhost:5000/model:a"),
    "[::1]:5000/model": ("oci", "oci://[::1]:5000/model:latest"),
    "myhost:5000/model": ("oci", "oci://myhost:5000/model:latest"),
    "quay.io/owner/model": ("oci", "oci://quay.io/owner/model:latest"),
    "rlcr://granite": ("oci", "oci://rlcr.io/ramalama/granite:latest"),
    # elsewhere
    "openai://gpt": ("openai", "openai://gpt"),
    "http://example.org/m.gguf": ("http", "http://example.org/m.gguf"),
    "https://Example.org:8443/a/m.gguf#x": ("https", "https://example.org:8443/a/m.gguf"),
    "https://[::1]/m.gguf": ("https", "https://[::1]/m.gguf"),
    "https://user:secret@example.org/m.gguf?token=secret&X-Amz-Signature=secret": (
        "https", "https://example.org/m.gguf",
    ),
    "https://example.org/get?file=m.gguf": ("https", "https://example.org/get?file=m.gguf"),
}  # fmt: skip
REFUSED = {
    "": ("the model's name is empty", "give a path to a GGUF file, or 'demo'"),
    " \n": ("the model's name is empty", "give a path to a GGUF file, or 'demo'"),
    "a\0b": ("a model's name cannot hold a NUL character", ""),
    "file://": ("file://: a path must follow file:", "write file:///PATH"),
    "file:": ("file:: a path must follow file:", "write file:///PATH"),
    "file:///": ("file:///: a path must follow file:", "write file:///PATH"),
    "file://there/m": ("file://there/m: a file on another host cannot be opened", "write file:///PATH"),
    "file:///a%00b": ("a model's name cannot hold a NUL character", ""),
    **{f"{scheme}://": (f"{scheme}://: a name must follow {scheme}://", "") for scheme in SCHEMES},
    **{
        text: (f"{text}: is no name of a model at Hugging Face", "write hf://OWNER/REPOSITORY[:QUANTIZATION]")
        for text in ("hf://model", "hf:/x", "hf://../model", "hf://o/..", "hf://o//m", "hf://o/m m", "hf://o/m:a/b",
                     "https://huggingface.co/owner", "hf.co/", f"hf://o/{'m' * 97}")
    },
    **{
        text: (f"{text}: leads out of the repository", "name a file by its path below the repository")
        for text in ("hf://o/m/../../x.gguf", "hf://o/m/a\\b.gguf", "hf://o/m/%2e%2e/x.gguf", "ms://o/m/./x",
                     "https://example.org/a/../m.gguf", "https://huggingface.co/o/m/blob/main/..%2Fx.gguf")
    },
    **{
        text: (f"{text}: a model's name cannot hold a control character", "")
        for text in ("hf://o/m\n", "hf://o/m/a\x1b.gguf", "ollama://a\tb", "oci://h.io/a\r", "na\x07me", "ftp://a\nb",
                     "hf://o/m/a%0ab.gguf", "openai://a\x7f", "https://h/\x1b.gguf", "hf://o/m/\udcff.gguf")
    },
    "hf://o/m/a//b.gguf": ("hf://o/m/a//b.gguf: holds an empty part", "write a single / between two parts"),
    "hf://o/m/%ff.gguf": ("hf://o/m/%ff.gguf: an escape with % is no UTF-8", ""),
    "hf://o/m@": ("hf://o/m@: nothing follows the @", "write OWNER/REPOSITORY@REVISION"),
    "hf://o/m:": ("hf://o/m:: nothing follows the colon", "write OWNER/REPOSITORY:QUANTIZATION"),
    "hf://o/m:é": ("hf://o/m:é: what follows the colon is no quantization", "write it like Q4_K_M"),
    "hf://o/m@a:Q4@b": ("hf://o/m@a:Q4@b: two revisions are named", "write one behind @"),
    "hf://o/m@-x": ("hf://o/m@-x: the revision is no branch, tag or commit", "write OWNER/REPOSITORY@REVISION"),
    "ms://model": ("ms://model: is no name of a model at ModelScope", "write ms://OWNER/REPOSITORY[:QUANTIZATION]"),
    **{
        text: (f"{text}: is no name of a model at Ollama", "write ollama://NAME[:TAG]")
        for text in ("ollama://a/../b", "ollama://a/b/c/d", "ollama://a:", "ollama://a/", "ollama://..", "ollama.com/")
        if text != "ollama://a/"
    },
    "ollama://a@sha256:0": ("ollama://a@sha256:0: what follows the @ is no digest",
                            "write NAME@sha256: and 64 hexadecimal digits"),
    "oci://quay.io/Owner/m": ("oci://quay.io/Owner/m: is no name in a registry", "names in registries are lower-case"),
    **{
        text: (f"{text}: is no name in a registry", "write oci://HOST/NAME[:TAG]")
        for text in ("oci://quay.io/../m", "oci://quay.io//m", "oci://quay.io/-m", "oci://a..b", "oci://quay.io/a b",
                     "rlcr://../x")
    },
    "oci://quay.io/m:": ("oci://quay.io/m:: what follows the colon is no tag", "write oci://HOST/NAME[:TAG]"),
    **{
        text: (f"{text}: is no address of a file", f"write {text.partition(':')[0]}://HOST/PATH/model.gguf")
        for text in ("https://[", "http:///m.gguf", "https://h:x/m.gguf", "https://h:70000/m.gguf", "https://:1/m.gguf",
                     "https://a..b/m")
    },
    "https://example.org/": ("https://example.org/: names no file", "write https://HOST/PATH/model.gguf"),
    "https://u:secret@example.org/?secret": (
        "https://example.org/: names no file", "write https://HOST/PATH/model.gguf",
    ),
    "https://huggingface.co/o?secret": (
        "https://huggingface.co/o: is no name of a model at Hugging Face",
        "write hf://OWNER/REPOSITORY[:QUANTIZATION]",
    ),
    "ftp://h/m.gguf": ("ftp://h/m.gguf: ftp:// is not where models come from",
                       "one of hf://, ollama://, oci://, ms://, https://, file://"),
}  # fmt: skip


def same(one: Reference, other: Reference) -> bool:
    """Whether two references are the same model."""
    parts = ("transport", "repository", "tag", "path", "revision")
    return [getattr(one, part) for part in parts] == [getattr(other, part) for part in parts]


@pytest.mark.parametrize("text", NAMES)
def test_names_and_their_one_spelling(text: str) -> None:
    reference = parse_reference(text)
    assert reference.text == plain_url(text)
    assert (reference.transport, canonical_name(reference)) == NAMES[text]
    again = parse_reference(canonical_name(reference))
    assert same(again, reference)
    assert canonical_name(again) == canonical_name(reference)


@pytest.mark.parametrize("text", REFUSED)
def test_exact_refusals(text: str) -> None:
    with pytest.raises(ValueProblem) as caught:
        parse_reference(text)
    assert (caught.value.message, caught.value.hint, caught.value.exit_code) == (*REFUSED[text], 22)


PARTS = {
    "hf://o/m@v/s/f.gguf": Reference("", "huggingface", "o/m@v/s/f.gguf", "o/m", "", "s/f.gguf", "v"),
    "ms://o/m:q4": Reference("", "modelscope", "o/m:Q4", "o/m", "Q4"),
    "ollama://m": Reference("", "ollama", "m:latest", "library/m", "latest"),
    "ollama://n/m:t": Reference("", "ollama", "n/m:t", "n/m", "t"),
    "oci://h.io/n/m": Reference("", "oci", "h.io/n/m:latest", "h.io/n/m", "latest"),
    f"oci://h.io/m:t@{DIGEST}": Reference("", "oci", f"h.io/m@{DIGEST}", "h.io/m", "", "", DIGEST),
    "https://u@h:1/p/f.gguf?q": Reference("", "https", "u@h:1/p/f.gguf?q", "h:1", "", "/p/f.gguf"),
    "file:///a%20b%2525.gguf": Reference("", "file", "/a b%25.gguf"),
    "file:///%zz%": Reference("", "file", "/%zz%"),
    "file:///%ff": Reference("", "file", "/\udcff"),
}


@pytest.mark.parametrize("text", PARTS)
def test_the_parts_of_a_name(text: str) -> None:
    assert parse_reference(text) == Reference(plain_url(text), *list(vars(PARTS[text]).values())[1:])


DEFAULTS = {
    "ollama": "ollama://x:latest", "oci": "oci://docker.io/library/x:latest", "docker": "oci://docker.io/library/x:latest",
    "rlcr": "oci://rlcr.io/ramalama/x:latest",
}  # fmt: skip


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_default_transport_counts_where_no_prefix_does(transport: str) -> None:
    if transport in DEFAULTS:
        assert canonical_name(parse_reference("x", transport)) == DEFAULTS[transport]
    else:
        with pytest.raises(ValueProblem):
            parse_reference("x", transport)
    assert canonical_name(parse_reference("hf://o/m", transport)) == "hf://o/m"
    assert parse_reference("./x", transport).transport == "file"
    assert parse_reference("x.gguf", transport).transport == "file"
    assert parse_reference("localhost:1/x", transport).transport == "oci"
    hub = {"ms": "modelscope", "modelscope": "modelscope", "ollama": "ollama"}.get(transport, "")
    if hub:
        assert canonical_name(parse_reference("o/m", transport)).startswith(f"{hub}://o/m")


ALIASES = {
    "hf://o/Some-Model-GGUF:Q4": "Some-Model-GGUF", "hf://o/m/s/file-Q4.gguf": "file-Q4", "ollama://n/m:1b": "m",
    "oci://h.io/a/b:c": "b", "https://h/a/b.GGUF?x": "b", "hf://o/m/b-00002-of-00003.gguf": "b", "x:1b": "x",
}  # fmt: skip


@pytest.mark.parametrize("text", ALIASES)
def test_the_name_in_the_api(text: str) -> None:
    assert alias_of(parse_reference(text)) == ALIASES[text]


# What a web address may hold, and what of it is kept.

QUERIES = {
    "file=a.gguf": "?file=a.gguf",
    "X-Amz-Signature=s&x-amz-date=1&Expires=1&Signature=s&Key-Pair-Id=k": "",
    "Revision=v1&FilePath=a/b.gguf&token=t": "?Revision=v1&FilePath=a/b.gguf",
    "download=true": "",
    "": "",
}


@pytest.mark.parametrize("query", QUERIES)
def test_secrets_of_an_address_are_no_part_of_the_name(query: str) -> None:
    assert canonical_name(parse_reference(f"https://u:p@h/get?{query}")) == f"https://h/get{QUERIES[query]}"


def test_unknown_questions_keep_files_apart_and_are_not_shown() -> None:
    one, other, again = (canonical_name(parse_reference(f"https://h/get?{q}")) for q in ("x=1&y=2", "x=2", "y=2&x=1"))
    assert one == again != other
    assert one.startswith("https://h/get?query-sha256=") and len(one) == len("https://h/get?query-sha256=") + 16


@given(st.text("abcS3cr&=%?;+ é", min_size=1), st.text("S3cret", min_size=6, max_size=9))
def test_no_password_of_an_address_is_ever_spelled(query: str, password: str) -> None:
    text = f"https://user:{password}@host.org/file?token={password}&{query}"
    reference = parse_reference(text)
    assert password not in canonical_name(reference)
    assert password not in plain_url(text)


# Properties.

WORDS = st.text("abcABC019._-/:@%~ é", min_size=1, max_size=12)
BEGINNINGS = ["", *(f"{scheme}://" for scheme in SCHEMES), *(f"{host}/" for host in WEB_HOSTS), "file:", "file://",
              *(f"https://{host}/" for host in WEB_HOSTS), "https://huggingface.co/o/m/resolve/",
              "https://modelscope.cn/models/o/m/resolve/", "hf://o/m", "hf://o/m/", "hf://o/m@",
              "oci://h.io/a"]  # fmt: skip


@given(st.one_of(
    st.text(),
    st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")),
    st.builds("{}{}".format, st.sampled_from(BEGINNINGS), st.one_of(st.text(), WORDS)),
    st.builds("{}{}/{}".format, st.sampled_from(BEGINNINGS), WORDS, WORDS),
))  # fmt: skip
@example("file://%")
@example("file://[")
@example("https://[")
@example("hf://o/m/a%3Ab%40c%25.gguf")
@example("https://huggingface.co/o/m/resolve/main/a.gguf%40b")
def test_any_text_is_one_model_or_refused(text: str) -> None:
    try:
        reference = parse_reference(text)
    except ValueProblem as problem:
        assert problem.exit_code == 22
        return
    known = {"file", "demo", "name", *SCHEMES.values()}
    assert reference.text == plain_url(text)
    assert reference.transport in known - {"rlcr"}
    assert reference.name != ""
    assert "\0" not in reference.name
    assert (reference.transport == "demo") == (text == DEMO)
    again = parse_reference(canonical_name(reference))
    assert same(again, reference)
    assert canonical_name(again) == canonical_name(reference)
    if reference.transport == "file":
        assert again.name == reference.name
    else:
        for part in (reference.repository, reference.path, reference.revision, canonical_name(reference)):
            assert part.isprintable() and ".." not in part.split("/")
        assert "\\" not in reference.repository + reference.path + reference.revision
        assert alias_of(reference) != ""


@given(st.text("ab/ %?#é:.", min_size=1))
def test_a_file_url_leads_to_its_path(path: str) -> None:
    assert parse_reference(f"file:///{quote(path)}") == Reference(f"file:///{quote(path)}", "file", f"/{path}")
