"""Which files of a repository are a model."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import PACKAGE
from hypothesis import given
from hypothesis import strategies as st

from ramalama_like.data import load_table
from ramalama_like.listing import Choice, Listing, RemoteFile
from ramalama_like.models.choices import (
    NoChoice,
    Part,
    candidates_of,
    choose,
    classify,
    part_of,
    quantization_of,
)
from ramalama_like.models.names import is_safe_path, is_sha256, nearest, size_text
from ramalama_like.reference import Reference

ORDER = load_table("quantizations")["order"]


def listing(*paths: str, sizes: dict[str, int] | None = None, name: str = "hf://org/repo") -> Listing:
    files = tuple(RemoteFile(path, f"https://hub/{path}", (sizes or {}).get(path, 1_500_000_000)) for path in paths)
    return Listing(name, files)


def asked(tag: str = "", path: str = "") -> Reference:
    name = "org/repo" + (f"/{path}" if path else "") + (f":{tag}" if tag else "")
    return Reference(f"hf://{name}", "huggingface", name, "org/repo", tag, path)


def chosen(paths: list[str], tag: str = "", path: str = "") -> list[str]:
    return [file.path for file in choose(listing(*paths), asked(tag, path)).files]


def refused(paths: list[str], tag: str = "", path: str = "") -> NoChoice:
    with pytest.raises(NoChoice) as caught:
        choose(listing(*paths), asked(tag, path))
    return caught.value


# Names.


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("Model-Q4_K_M.gguf", "Q4_K_M"),
        ("model.q4_k_m.gguf", "q4_k_m"),
        ("Model_Q4_K_M.gguf", "Q4_K_M"),
        ("Model-Q4_K_M_L.gguf", "Q4_K_M_L"),
        ("Model-IQ4_XS.gguf", "IQ4_XS"),
        ("Model-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"),
        ("Model.i1-Q4_K_M.gguf", "i1-Q4_K_M"),
        ("UD-Q2_K_XL/Model-UD-Q2_K_XL-00001-of-00002.gguf", "UD-Q2_K_XL"),
        ("Q8_0/x-00001-of-00003.gguf", "Q8_0"),
        ("BF16/Model-BF16-00002-of-00002.gguf", "BF16"),
        ("gpt-oss-20b-mxfp4.gguf", "mxfp4"),
        ("gpt-oss-20b-MXFP4_MOE.gguf", "MXFP4_MOE"),
        ("Model-IQ2_XXS.gguf", "IQ2_XXS"),
        ("Model-Q4_0_4_8.gguf", "Q4_0_4_8"),
        ("Model-Q4_0.gguf", "Q4_0"),
        ("ggml-model-f16.gguf", "f16"),
        ("gemma-3-27b-it-qat-Q4_0.gguf", "Q4_0"),
        ("Model-F16-Q6_K.gguf", "Q6_K"),
        ("Model-Q4_K_M-imat.gguf", "Q4_K_M"),
        ("Model-TQ1_0.gguf", "TQ1_0"),
        ("smollm.gguf", ""),
        ("Qwen3-8B.gguf", ""),
        ("model-00001-of-00002.gguf", ""),
        ("Q5_K_S/Model-Q4_K_M.gguf", "Q4_K_M"),
        ("Model.Q8_0.gguf.part1of2", "Q8_0"),
        ("mmproj-F16.gguf", "F16"),
        ("Model-IQ9_ZZ.gguf", "IQ9_ZZ"),  # not known, but made like one
        ("SUD-Q4_K_M.gguf", "Q4_K_M"),  # UD is a word of its own
    ],
)
def test_the_quantization_in_a_name(path: str, wanted: str) -> None:
    assert quantization_of(path) == wanted


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("a/x-00001-of-00003.gguf", Part("a/x", 1, 3)),
        ("x-00002-of-00002.safetensors", Part("x", 2, 2)),
        ("x-00002-of-00002.GGUF", Part("x", 2, 2)),
        ("x-00000-of-00002.gguf", None),
        ("x-00003-of-00002.gguf", None),
        ("x-1-of-2.gguf", None),
        ("x-000²1-of-00002.gguf", None),
        ("x-00001-of-00002.bin", None),
        ("x.gguf", None),
        ("x.gguf.part1of2", Part("x.gguf", 1, 2, pieces=True)),
        ("a/x.gguf.part2of2", Part("a/x.gguf", 2, 2, pieces=True)),
        ("x.gguf-split-a", Part("x.gguf", 1, 0, pieces=True)),
        ("x.gguf-split-b", Part("x.gguf", 2, 0, pieces=True)),
        ("x.gguf-part-ab", Part("x.gguf", 28, 0, pieces=True)),
        ("x.gguf.part0", Part("x.gguf", 1, 0, pieces=True)),
        ("x.gguf.partial", None),
        ("x.gguf/part1of2", None),
        ("x.gguf_file", None),
    ],
)
def test_the_part_in_a_name(path: str, wanted: Part | None) -> None:
    assert part_of(path) == wanted


@given(st.sampled_from(ORDER), st.sampled_from(["", "UD-", "i1-"]), st.sampled_from(["-", "."]),
       st.booleans(), st.booleans())  # fmt: skip
def test_every_known_name_is_found_as_it_is_spelled(quantization: str, prefix: str, mark: str, lower: bool,
                                                    parts: bool) -> None:  # fmt: skip
    spelled = prefix + (quantization.lower() if lower else quantization)
    path = f"Some.Model-7B{mark}{spelled}" + ("-00001-of-00002" if parts else "") + ".gguf"
    assert quantization_of(path) == spelled


@given(st.lists(st.sampled_from(ORDER), min_size=1, max_size=12, unique=True), st.data())
def test_a_quantization_is_matched_as_a_whole(quantizations: list[str], data: st.DataObject) -> None:
    """Whatever others there are: the one that is asked for, in any case, or a refusal."""
    folders = [data.draw(st.sampled_from(["", "sub/", f"{name}/"])) for name in quantizations]
    paths = [f"{folder}Model-{name}.gguf" for folder, name in zip(folders, quantizations, strict=True)]
    wanted = data.draw(st.sampled_from(ORDER))
    tag = data.draw(st.sampled_from([wanted, wanted.lower(), wanted.title()]))
    if wanted in quantizations:
        assert chosen(paths, tag) == [paths[quantizations.index(wanted)]]
    else:
        problem = refused(paths, tag)
        assert problem.message == f"hf://org/repo: has no {tag}"
        assert {each.quantization for each in problem.candidates} == set(quantizations)
        assert all(name in problem.hint for name in quantizations)


@given(st.text(max_size=40), st.text(alphabet="Q4_KMof-.0123gupartsli", max_size=40))
def test_any_name_can_be_looked_at(one: str, other: str) -> None:
    for name in (one, other, f"{one}/{other}.gguf", f"{other}.gguf.{one}"):
        quantization, part = quantization_of(name), part_of(name)
        assert quantization in name
        assert part is None or (part.number >= 0 and name.startswith(part.stem))
        assert list(classify([name])) == [name]


@given(st.lists(st.sampled_from([*ORDER, "", "mmproj", "draft", "imatrix", "lora-F16", "00001-of-00002",
                                 "Q8_0-00002-of-00002"]), max_size=8), st.sampled_from(["", *ORDER[:6], "SAFETENSORS"]),
       st.sampled_from(["", "sub"]))  # fmt: skip
def test_a_choice_is_whole_or_refused(words: list[str], tag: str, path: str) -> None:
    """Of anything: at most one model, all of its parts, at most one projector; nothing that is not in the listing."""
    names = [f"{'sub/' if place % 3 == 0 else ''}m{place % 2}-{word}.gguf" for place, word in enumerate(words)]
    all_files = listing(*dict.fromkeys(names))
    try:
        choice = choose(all_files, asked(tag, path))
    except NoChoice as problem:
        assert problem.exit_code == 22
        assert problem.hint
        return
    roles = [file.role for file in choice.files]
    assert roles.count("model") == 1
    assert roles[0] == "model"
    assert roles.count("mmproj") <= 1
    assert set(roles) <= {"model", "shard", "mmproj"}
    first = part_of(choice.files[0].path)
    assert roles.count("shard") == (first.count - 1 if first else 0)
    assert {file.path for file in choice.files} <= {file.path for file in all_files.files}


# Roles.


def test_what_the_files_of_a_repository_are() -> None:
    assert classify([
        "README.md", ".gitattributes", "config.json", "Model-Q4_K_M.gguf", "Model-imatrix-Q4_K_M.gguf",
        "Q8_0/Model-Q8_0-00001-of-00002.gguf", "Q8_0/Model-Q8_0-00002-of-00002.gguf",
        "Model.Q6_K.gguf.part1of2", "Model.Q6_K.gguf.part2of2",
        "mmproj-F16.gguf", "sub/Model-mmproj-f16.gguf", "mtp-Model.gguf", "mtp/mtp-Model-Q8_0.gguf",
        "Model-MTP-Q8_0.gguf",
        "eagle3-Model.gguf", "Model-draft-Q8_0.gguf", "imatrix.dat", "Model.imatrix", "Model-imatrix.gguf",
        "imatrix_unsloth.gguf_file", "lora-F16.gguf", "Model-LoRA-merged-Q8_0.gguf", "Model-LoRA-Q4_K_M.gguf",
        "adapter_model.safetensors", "model.safetensors", "model-00001-of-00002.safetensors", "chat_template.jinja",
        "chat_template.json", "pytorch_model.bin", "Model.gguf.md",
    ]) == {
        "README.md": "other", ".gitattributes": "other", "config.json": "other", "Model-Q4_K_M.gguf": "model",
        "Model-imatrix-Q4_K_M.gguf": "model",
        "Q8_0/Model-Q8_0-00001-of-00002.gguf": "model", "Q8_0/Model-Q8_0-00002-of-00002.gguf": "shard",
        "Model.Q6_K.gguf.part1of2": "shard", "Model.Q6_K.gguf.part2of2": "shard",
        "mmproj-F16.gguf": "mmproj", "sub/Model-mmproj-f16.gguf": "mmproj", "mtp-Model.gguf": "draft",
        "mtp/mtp-Model-Q8_0.gguf": "draft", "Model-MTP-Q8_0.gguf": "model",
        "eagle3-Model.gguf": "draft", "Model-draft-Q8_0.gguf": "draft", "imatrix.dat": "imatrix",
        "Model.imatrix": "imatrix", "Model-imatrix.gguf": "imatrix",
        "imatrix_unsloth.gguf_file": "imatrix", "lora-F16.gguf": "adapter", "Model-LoRA-merged-Q8_0.gguf": "model",
        "Model-LoRA-Q4_K_M.gguf": "model",
        "adapter_model.safetensors": "adapter", "model.safetensors": "safetensors",
        "model-00001-of-00002.safetensors": "safetensors", "chat_template.jinja": "template",
        "chat_template.json": "template", "pytorch_model.bin": "other", "Model.gguf.md": "other",
    }  # fmt: skip


def test_a_repository_of_drafts_offers_them_as_models() -> None:
    assert classify(["Tiny-DRAFT-0.6B-Q4_0.gguf", "imatrix.dat"]) == {
        "Tiny-DRAFT-0.6B-Q4_0.gguf": "model",
        "imatrix.dat": "imatrix",
    }
    assert chosen(["Tiny-DRAFT-0.6B-Q4_0.gguf"]) == ["Tiny-DRAFT-0.6B-Q4_0.gguf"]


def test_adapters_alone_are_no_model() -> None:
    assert refused(["lora-F16.gguf", "README.md"]).message == "hf://org/repo: holds no model, only adapters"
    assert chosen(["x-lora-F16.gguf", "x-lora-Q8_0.gguf", "x-lora-Q4_K_M.gguf"]) == ["x-lora-Q4_K_M.gguf"]


# Choosing.

USUAL = ["README.md", "imatrix.dat", "Model-Q2_K.gguf", "Model-Q4_0.gguf", "Model-Q4_K_M.gguf", "Model-Q8_0.gguf",
         "mmproj-BF16.gguf", "mmproj-F16.gguf", "mmproj-F32.gguf", "mtp-Model.gguf"]  # fmt: skip


def test_without_a_quantization_the_usual_one_with_its_projector() -> None:
    choice = choose(listing(*USUAL), asked())
    assert [(file.path, file.role) for file in choice.files] == [("Model-Q4_K_M.gguf", "model"),
                                                                ("mmproj-F16.gguf", "mmproj")]  # fmt: skip
    assert (choice.quantization, choice.size_bytes) == ("Q4_K_M", 3_000_000_000)
    assert chosen(USUAL, "LATEST") == chosen(USUAL, "latest") == chosen(USUAL)


def test_the_order_of_the_table_decides() -> None:
    assert chosen(["a-F32.gguf", "a-Q8_0.gguf", "a-IQ4_XS.gguf", "a-Q5_K_M.gguf"]) == ["a-IQ4_XS.gguf"]
    assert chosen(["a-Q4_0_4_4.gguf", "a-Q2_K.gguf"]) == ["a-Q2_K.gguf"]
    assert chosen(["UD/a-UD-Q4_K_XL.gguf", "a-Q8_0.gguf"]) == ["UD/a-UD-Q4_K_XL.gguf"]
    assert chosen(["a-UD-Q4_K_M.gguf", "a-Q4_K_M.gguf"]) == ["a-Q4_K_M.gguf"]


def test_a_preference_of_the_users_comes_first() -> None:
    found = choose(listing(*USUAL), asked(), ("Q6_K", "q8_0", "Q2_K"))
    assert found.quantization == "Q8_0"
    assert choose(listing(*USUAL), asked(), ("Q6_K",)).quantization == "Q4_K_M"
    assert choose(listing(*USUAL), asked("Q2_K"), ("Q8_0",)).quantization == "Q2_K"


def test_a_word_before_the_quantization_may_be_left_out_where_nothing_else_has_it() -> None:
    both = ["a-UD-Q4_K_M.gguf", "a-Q4_K_M.gguf"]
    assert chosen(both, "Q4_K_M") == ["a-Q4_K_M.gguf"]
    assert chosen(both, "UD-Q4_K_M") == ["a-UD-Q4_K_M.gguf"]
    assert chosen(both[:1], "Q4_K_M") == ["a-UD-Q4_K_M.gguf"]
    assert chosen(["a.i1-Q4_K_S.gguf", "a.i1-Q4_K_M.gguf"], "q4_k_s") == ["a.i1-Q4_K_S.gguf"]


def test_a_word_at_the_end_of_a_name_can_be_asked_for() -> None:
    paths = ["a-Q4_K_M-imat.gguf", "a-Q4_K_M.gguf", "a-special.gguf"]
    assert chosen(paths, "IMAT") == ["a-Q4_K_M-imat.gguf"]
    assert chosen(paths, "SPECIAL") == ["a-special.gguf"]
    assert refused(paths, "K_M").message == "hf://org/repo: has no K_M"
    assert refused(["a-Q4_K_M_L.gguf"], "Q4_K_M").message == "hf://org/repo: has no Q4_K_M"


def test_all_parts_in_order_also_in_folders() -> None:
    parts = [f"Q8_0/Model-Q8_0-{number:05}-of-00003.gguf" for number in (1, 2, 3)]
    choice = choose(listing(parts[2], parts[0], parts[1], "Model-Q4_0.gguf", "mmproj-F16.gguf"), asked("Q8_0"))
    assert [(file.path, file.role) for file in choice.files] == [
        (parts[0], "model"), (parts[1], "shard"), (parts[2], "shard"), ("mmproj-F16.gguf", "mmproj"),
    ]  # fmt: skip
    assert chosen(parts, path=parts[1]) == parts
    assert chosen([*parts, "Model-Q4_K_M.gguf"], path="Q8_0") == parts


def test_missing_parts_are_named_and_others_offered() -> None:
    problem = refused(["M-Q8_0-00001-of-00004.gguf", "M-Q8_0-00003-of-00004.gguf", "M-Q4_0.gguf"], "Q8_0")
    assert problem.message == (
        "hf://org/repo: the repository lacks parts of Q8_0: M-Q8_0-00002-of-00004.gguf, M-Q8_0-00004-of-00004.gguf"
    )
    assert problem.hint == "there is Q4_0 (1.5 GB); write hf://org/repo:Q4_0"
    # Without a quantization what is whole is taken.
    assert chosen(["M-Q4_K_M-00001-of-00002.gguf", "M-Q2_K.gguf"]) == ["M-Q2_K.gguf"]
    many = refused([f"M-Q8_0-{number:05}-of-99999.gguf" for number in (1, 7)])
    assert many.message == ("hf://org/repo: the repository lacks parts of Q8_0: M-Q8_0-00002-of-99999.gguf, "
                            "M-Q8_0-00003-of-99999.gguf and 996 more")  # fmt: skip
    assert many.hint == "ask its owner, or use another repository"


def test_pieces_of_a_file_have_to_be_joined_first() -> None:
    pieces = ["M.Q6_K.gguf.part1of2", "M.Q6_K.gguf.part2of2"]
    problem = refused([*pieces, "M.Q4_K_S.gguf"], "Q6_K")
    assert problem.message == "hf://org/repo: Q6_K is cut into 2 pieces that have to be joined first"
    assert problem.hint == "there is Q4_K_S (1.5 GB); write hf://org/repo:Q4_K_S"
    assert refused(pieces).hint == "fetch the pieces by their names, such as M.Q6_K.gguf.part1of2"
    assert chosen(pieces, path=pieces[1]) == [pieces[1]]


def test_the_same_model_whole_and_in_parts_is_one() -> None:
    parts = [f"Q4_K_M/M-Q4_K_M-{number:05}-of-00002.gguf" for number in (1, 2)]
    assert chosen([*parts, "M-Q4_K_M.gguf"], "Q4_K_M") == ["M-Q4_K_M.gguf"]
    assert chosen([parts[0], "M-Q4_K_M.gguf"], "Q4_K_M") == ["M-Q4_K_M.gguf"]
    leftovers = ["M-Q4_K_M-00001-of-00003.gguf", "M-Q4_K_M-00001-of-00002.gguf", "M-Q4_K_M-00002-of-00002.gguf"]
    assert chosen(leftovers) == leftovers[1:]


def test_the_same_name_in_two_folders_is_not_the_same_model() -> None:
    paths = ["en/m-Q4_K_M.gguf", "fr/m-Q4_K_M.gguf", "fr/m-q4_k_m.gguf", "de/m-Q4_K_M.gguf"]
    assert refused(paths, "Q4_K_M").message == "hf://org/repo: has 4 models in Q4_K_M"
    same = tuple(RemoteFile(path, f"https://hub/{path}", 9, "a" * 64) for path in paths)
    assert [file.path for file in choose(Listing("hf://org/repo", same), asked("Q4_K_M")).files] == [paths[3]]


def test_several_models_in_one_quantization_are_ambiguous() -> None:
    problem = refused(["a-Q4_K_M.gguf", "b-Q4_K_M.gguf", "a-Q8_0.gguf"])
    assert problem.message == "hf://org/repo: has 2 models in Q4_K_M"
    assert problem.hint == ("there are a-Q4_K_M.gguf (1.5 GB), b-Q4_K_M.gguf (1.5 GB); "
                            "write hf://org/repo/a-Q4_K_M.gguf")  # fmt: skip
    assert chosen(["a-Q4_K_M.gguf", "b-Q4_K_M.gguf"], path="b-Q4_K_M.gguf") == ["b-Q4_K_M.gguf"]
    assert chosen(["x/a-Q4_K_M.gguf", "y/b-Q4_K_M.gguf"], "Q4_K_M", "y") == ["y/b-Q4_K_M.gguf"]
    assert refused(["one.gguf", "two.gguf"]).message == "hf://org/repo: has 2 models"


def test_what_is_absent_is_answered_with_what_there_is() -> None:
    sizes = {"Model-Q2_K.gguf": 999_960_000, "Model-Q4_0.gguf": 12_000, "Model-Q4_K_M.gguf": -1, "Model-Q8_0.gguf": 7}
    with pytest.raises(NoChoice) as caught:
        choose(listing(*USUAL, sizes=sizes, name="hf://org/repo@v1:Q5_K_M"), asked("Q5_K_M"))
    assert caught.value.message == "hf://org/repo@v1: has no Q5_K_M"
    assert caught.value.hint == ("there are Q4_K_M, Q4_0 (12.0 kB), Q8_0 (7 bytes), Q2_K (1.0 GB); "
                                 "write hf://org/repo@v1:Q4_K_M")  # fmt: skip
    assert [each.quantization for each in caught.value.candidates] == ["Q4_K_M", "Q4_0", "Q8_0", "Q2_K"]


def test_a_hint_stays_readable_however_much_there_is() -> None:
    problem = refused([f"M-{name}.gguf" for name in ORDER], "Q9_9")
    assert len(problem.candidates) == len(ORDER)
    assert problem.hint.count("GB") == 12
    assert f" and {len(ORDER) - 12} more; write hf://org/repo:Q4_K_M" in problem.hint
    assert len(problem.hint) < 4 * 80


def test_a_file_that_is_named_is_taken_whatever_it_is() -> None:
    assert chosen(USUAL, path="Model-Q2_K.gguf") == ["Model-Q2_K.gguf", "mmproj-F16.gguf"]
    for path, role in (("mmproj-F32.gguf", "mmproj"), ("imatrix.dat", "imatrix"), ("README.md", "other")):
        choice = choose(listing(*USUAL), asked(path=path))
        assert [(file.path, file.role) for file in choice.files] == [(path, role)]
    draft = choose(listing(*USUAL), asked(path="mtp-Model.gguf"))
    assert (draft.files[0].path, draft.files[0].role) == ("mtp-Model.gguf", "model")


def test_a_file_that_is_not_there_is_answered_with_the_nearest() -> None:
    problem = refused(USUAL, path="Model-Q4_K_S.gguf")
    assert problem.message == "hf://org/repo: there is no file or folder Model-Q4_K_S.gguf in the repository"
    assert problem.hint == "did you mean Model-Q4_K_M.gguf or Model-Q4_0.gguf or Model-Q2_K.gguf?"
    assert refused(["a-Q8_0.gguf"], path="zzzzzzzz").hint == (
        "there is a-Q8_0.gguf (1.5 GB); write hf://org/repo/a-Q8_0.gguf"
    )


def test_the_projector_that_belongs_to_a_model() -> None:
    two = ["small-Q4_K_M.gguf", "large-Q4_K_M.gguf", "mmproj-small-F16.gguf", "mmproj-large-Q8_0.gguf",
           "mmproj-large-F32.gguf"]  # fmt: skip
    assert chosen(two, path="small-Q4_K_M.gguf") == ["small-Q4_K_M.gguf", "mmproj-small-F16.gguf"]
    assert chosen(two, path="large-Q4_K_M.gguf") == ["large-Q4_K_M.gguf", "mmproj-large-F32.gguf"]
    assert chosen([*two, "other-Q4_K_M.gguf"], path="other-Q4_K_M.gguf") == ["other-Q4_K_M.gguf"]
    assert chosen(["x/a-Q4_0.gguf", "x/mmproj-F32.gguf", "mmproj-F16.gguf"]) == ["x/a-Q4_0.gguf", "x/mmproj-F32.gguf"]
    assert chosen(["x/a-Q4_0.gguf", "mmproj-F16.gguf"]) == ["x/a-Q4_0.gguf", "mmproj-F16.gguf"]
    assert chosen(["a-Q4_0.gguf", "mmproj/a-mmproj-F16.gguf"]) == ["a-Q4_0.gguf", "mmproj/a-mmproj-F16.gguf"]
    for order in (["Q8_0", "F32", "BF16", "F16"], ["F16", "BF16", "Q8_0"]):
        assert chosen(["a-Q4_0.gguf", *(f"mmproj-a-{name}.gguf" for name in order)])[1] == "mmproj-a-F16.gguf"


def test_safetensors_with_what_belongs_to_them() -> None:
    paths = ["model-00002-of-00002.safetensors", "model-00001-of-00002.safetensors", "model.safetensors.index.json",
             "consolidated.safetensors", "config.json", "tokenizer.json", "tokenizer.model", "chat_template.jinja",
             "README.md", "pytorch_model.bin", "sub/model.safetensors", "sub/config.json"]  # fmt: skip
    assert chosen(paths) == [
        "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "chat_template.jinja", "config.json",
        "model.safetensors.index.json", "tokenizer.json", "tokenizer.model",
    ]  # fmt: skip
    assert refused(paths, "Q4_K_M").message == "hf://org/repo: holds safetensors, which have no quantization Q4_K_M"
    assert refused(paths[1:]).message == (
        "hf://org/repo: the repository lacks parts of its weights: model-00002-of-00002.safetensors"
    )
    assert chosen(["m-Q4_0.gguf", "model.safetensors"]) == ["m-Q4_0.gguf"]
    assert chosen(["m-Q4_0.gguf", "model.safetensors"], "SAFETENSORS") == ["model.safetensors"]
    assert refused(["m-Q4_0.gguf"], "safetensors").message == "hf://org/repo: holds no safetensors"


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([], "holds no model"),
        (["README.md"], "holds no model"),
        (["mmproj-F16.gguf", "imatrix.dat"], "holds no model, only projectors and importance matrices"),
        (["pytorch_model.bin", "x.onnx"], "holds neither GGUF files nor safetensors, only .bin, .onnx"),
    ],
)
def test_a_repository_without_a_model(paths: list[str], message: str) -> None:
    assert refused(paths).message == f"hf://org/repo: {message}"


def test_what_a_registry_says_is_believed() -> None:
    told = (RemoteFile("params", "u", 3, role="other"), RemoteFile("t", "u", 2, role="template"),
            RemoteFile("mmproj", "u", 5, role="mmproj"), RemoteFile("model", "u", 9, role="model"))  # fmt: skip
    choice = choose(Listing("ollama://x:latest", told), Reference("x", "ollama", "x:latest", "library/x", "latest"))
    assert choice == Choice(Listing("ollama://x:latest", told), (told[3], told[2], told[1]), "")
    with pytest.raises(NoChoice):
        choose(Listing("ollama://x:latest", told[:2]), Reference("x", "ollama", "x:latest"))
    layers = tuple(RemoteFile("models/", f"u{number}", 3, role="layer") for number in range(3))
    assert choose(Listing("oci://r/x:v1", layers), Reference("x", "oci", "r/x:v1")).files == layers


def test_candidates_for_a_list() -> None:
    found = candidates_of(listing(*USUAL, "Q6_K/a-00001-of-00002.gguf", "Q6_K/a-00002-of-00002.gguf"))
    assert [(each.quantization, len(each.files), each.size_bytes, each.usable) for each in found] == [
        ("Q4_K_M", 1, 1_500_000_000, True), ("Q4_0", 1, 1_500_000_000, True), ("Q6_K", 2, 3_000_000_000, True),
        ("Q8_0", 1, 1_500_000_000, True), ("Q2_K", 1, 1_500_000_000, True),
    ]  # fmt: skip


REAL = {
    # How makers of GGUF files name them, each with what a bare name and a second one lead to.
    "several folders": (
        ["Model-30B-UD-Q4_K_XL.gguf", "Model-30B-Q4_K_M.gguf", "Model-30B-IQ4_XS.gguf", "mmproj-BF16.gguf",
         "mmproj-F16.gguf", "mmproj-F32.gguf", "BF16/Model-30B-BF16-00001-of-00002.gguf",
         "BF16/Model-30B-BF16-00002-of-00002.gguf", "imatrix_unsloth.gguf_file", "config.json"],
        ["Model-30B-Q4_K_M.gguf", "mmproj-F16.gguf"], "BF16",
        ["BF16/Model-30B-BF16-00001-of-00002.gguf", "BF16/Model-30B-BF16-00002-of-00002.gguf", "mmproj-F16.gguf"]),
    "owner in the name": (
        ["google_gemma-3-27b-it-Q4_K_M.gguf", "google_gemma-3-27b-it-Q4_K_L.gguf", "google_gemma-3-27b-it-imatrix.gguf",
         "mmproj-google_gemma-3-27b-it-bf16.gguf", "mmproj-google_gemma-3-27b-it-f16.gguf",
         "google_gemma-3-27b-it-bf16/google_gemma-3-27b-it-bf16-00001-of-00002.gguf",
         "google_gemma-3-27b-it-bf16/google_gemma-3-27b-it-bf16-00002-of-00002.gguf"],
        ["google_gemma-3-27b-it-Q4_K_M.gguf", "mmproj-google_gemma-3-27b-it-f16.gguf"], "q4_k_l",
        ["google_gemma-3-27b-it-Q4_K_L.gguf", "mmproj-google_gemma-3-27b-it-f16.gguf"]),
    "points": (
        ["gemma-3-4b-it.i1-Q4_K_M.gguf", "gemma-3-4b-it.i1-IQ1_S.gguf", "gemma-3-4b-it.mmproj-f16.gguf",
         "gemma-3-4b-it.mmproj-Q8_0.gguf", "gemma-3-4b-it.imatrix.gguf", "imatrix.dat"],
        ["gemma-3-4b-it.i1-Q4_K_M.gguf", "gemma-3-4b-it.mmproj-f16.gguf"], "IQ1_S",
        ["gemma-3-4b-it.i1-IQ1_S.gguf", "gemma-3-4b-it.mmproj-f16.gguf"]),
    "short": (
        ["Phi-3-mini-4k-instruct-q4.gguf", "Phi-3-mini-4k-instruct-fp16.gguf"],
        ["Phi-3-mini-4k-instruct-q4.gguf"], "FP16", ["Phi-3-mini-4k-instruct-fp16.gguf"]),
    "lower case, in parts": (
        ["qwen2.5-7b-instruct-q4_k_m-00001-of-00002.gguf", "qwen2.5-7b-instruct-q4_k_m-00002-of-00002.gguf",
         "qwen2.5-7b-instruct-q3_k_m.gguf"],
        ["qwen2.5-7b-instruct-q4_k_m-00001-of-00002.gguf", "qwen2.5-7b-instruct-q4_k_m-00002-of-00002.gguf"], "Q3_K_M",
        ["qwen2.5-7b-instruct-q3_k_m.gguf"]),
    "projector with a size": (
        ["gemma-3-27b-it-q4_0.gguf", "mmproj-model-f16-27B.gguf"],
        ["gemma-3-27b-it-q4_0.gguf", "mmproj-model-f16-27B.gguf"], "Q4_0",
        ["gemma-3-27b-it-q4_0.gguf", "mmproj-model-f16-27B.gguf"]),
    "one format": (["gpt-oss-20b-mxfp4.gguf"], ["gpt-oss-20b-mxfp4.gguf"], "MXFP4", ["gpt-oss-20b-mxfp4.gguf"]),
    "heads that draft": (
        ["Gemma4-31B-it-Q8_0.gguf", "mtp-gemma-4-31B-it.gguf", "mtp/mtp-gemma-4-31B-it-Q4_K_M.gguf"],
        ["Gemma4-31B-it-Q8_0.gguf"], "Q8_0", ["Gemma4-31B-it-Q8_0.gguf"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", REAL)
def test_repositories_as_people_make_them(kind: str) -> None:
    paths, usual, tag, other = REAL[kind]
    assert chosen(paths) == usual
    assert chosen(paths, tag) == other
    assert chosen(paths[::-1]) == usual


# Names from outside.


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a/.", "a\\b", "a\nb", "a\x1b[2Jb", "a\0b", "a/", " a", "a ",
     "x" * 256, "a/" * 600 + "b", "a\u202eb", "a\ud800", None, 7],
)  # fmt: skip
def test_paths_that_could_do_harm(path: object) -> None:
    assert not is_safe_path(path)


@given(st.text(min_size=1, max_size=60))
def test_a_safe_path_stays_inside(path: str) -> None:
    import os.path

    if is_safe_path(path):
        joined = os.path.normpath(os.path.join("/store/folder", path))
        assert joined == f"/store/folder/{path}"
        assert path.isprintable()


def test_small_words() -> None:
    assert is_sha256("0" * 64)
    assert not any(is_sha256(text) for text in ("0" * 63, "A" * 64, "0" * 65, None, "g" * 64))
    assert nearest("QWEN3-8b-gguf", ["Qwen3-8B-GGUF", "Qwen3-4B-GGUF", "other"]) == ("Qwen3-8B-GGUF", "Qwen3-4B-GGUF")
    assert [size_text(size) for size in (-1, 0, 999, 999_949, 999_950, 1_500_000, 4_683_073_184)] == [
        "", "0 bytes", "999 bytes", "999.9 kB", "1.0 MB", "1.5 MB", "4.7 GB",
    ]  # fmt: skip


def test_choosing_is_pure() -> None:
    for name in ("choices", "names"):
        text = Path(PACKAGE, "models", f"{name}.py").read_text("utf-8")
        assert "import os" not in text
        assert "open(" not in text
        assert not any(f"import {module}" in text for module in ("http", "socket", "pathlib", "requests", "time"))
