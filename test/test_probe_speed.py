"""What makes probing fast: that nothing is read twice, no link followed twice, and no large library imported.

Times are measured in bench/run.py, since no test may depend on them.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from big_host import CORES, GPUS, _yaml, pci_address, uuid, write_big_host
from hypothesis import given
from hypothesis import strategies as st

from ramalama_like.facts import facts_from_plain
from ramalama_like.probe.cdi import PASSED_OVER, parse_yaml
from ramalama_like.probe.tree import Tree

# Everything that a fresh process opens below a folder while it probes it, and the modules that it imported for that.
COUNT = """
import json, sys
from ramalama_like.facts import facts_to_plain
from ramalama_like.probe import probe
before, opened = set(sys.modules), []
sys.addaudithook(lambda event, args: opened.append(str(args[0]))
                 if event in ("open", "os.listdir", "os.scandir") and str(args[0]).startswith(sys.argv[1]) else None)
facts = probe(sys.argv[1])
print(json.dumps({"opened": opened, "imported": sorted(set(sys.modules) - before), "facts": facts_to_plain(facts)}))
"""


@pytest.mark.parametrize("kind", ["amd", "nvidia"])
def test_a_machine_with_eight_cards_is_read_once(kind: str, tmp_path: Path) -> None:
    root = write_big_host(tmp_path / "host", kind)
    done = subprocess.run([sys.executable, "-c", COUNT, str(root)], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    facts = facts_from_plain(found["facts"])
    assert (facts.cpus, facts.physical_cores, len(facts.gpus), facts.notes) == (2 * CORES, CORES, GPUS, ())
    assert [gpu.pci_address for gpu in facts.gpus] == [pci_address(number) for number in range(GPUS)]
    names = (*map(str, range(GPUS)), *map(uuid, range(GPUS)))
    (spec,) = facts.cdi
    assert (spec.names, spec.missing) == (names, ())
    if kind == "amd":
        assert [(gpu.gfx, gpu.hip_index, gpu.kfd_node) for gpu in facts.gpus] == [
            ("gfx942", number, number + 2) for number in range(GPUS)
        ]
        assert len({node.vram_bytes for node in facts.kfd_nodes}) == 1
    else:
        assert [(gpu.nvidia_index, gpu.nvidia_uuid) for gpu in facts.gpus] == [(n, uuid(n)) for n in range(GPUS)]
    # The vendor and number of a card stand in one file that is reached through the bus and through its nodes.
    twice = {path for path in found["opened"] if found["opened"].count(path) > 2}
    assert twice == set()
    assert len(found["opened"]) < 200 + CORES + 30 * GPUS
    assert {"yaml", "json", "re", "typing"} & set(found["imported"]) == set()


@pytest.mark.parametrize("kind", ["amd", "nvidia"])
def test_what_is_passed_over_in_a_spec_is_not_looked_at(kind: str, tmp_path: Path) -> None:
    root = write_big_host(tmp_path / "host", kind)
    file = root / "etc/cdi" / ("amd.json" if kind == "amd" else "nvidia.yaml")
    text = file.read_text() if kind == "nvidia" else _yaml(json.loads(file.read_text()))
    whole, short = parse_yaml(text), parse_yaml(text, PASSED_OVER)
    assert whole == yaml.safe_load(text)
    assert short == _emptied(whole)


def _emptied(item: object) -> object:
    if isinstance(item, dict):
        return {
            key: None if f"{key}:" in PASSED_OVER and not isinstance(member, str) else _emptied(member)
            for key, member in item.items()
        }
    return [_emptied(member) for member in item] if isinstance(item, list) else item


NAMES = st.sampled_from(["a", "b", "hooks", "mounts", "kind"])
TEXTS = st.sampled_from(["x", "../card0::/dev/dri/by-path/pci-0000:01:00.0-card", "--link", "0.5.0", "7"])


def _members(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    # Neither does a generator write a sequence straight into a sequence, nor does the plain reader take one.
    flat = st.lists(TEXTS, min_size=1, max_size=3)
    return flat | st.dictionaries(NAMES, inner, min_size=1, max_size=3).map(
        lambda item: [item, "x"] if len(item) > 2 else item
    )


TREES: st.SearchStrategy[object] = st.recursive(TEXTS, _members, max_leaves=12)


@given(st.dictionaries(NAMES, TREES, min_size=1, max_size=4), st.booleans())
def test_passing_over_takes_nothing_else_along(tree: dict[str, object], spread: bool) -> None:
    text = _yaml(tree)
    if spread:  # sequences indented below their key
        text = yaml.dump(tree, Dumper=_Indented, sort_keys=False)
    assert parse_yaml(text, PASSED_OVER) == _emptied(parse_yaml(text))


class _Indented(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> object:
        return super().increase_indent(flow, False)


# Links.

CONTENT = "a file"
PARTS = st.sampled_from(["a", "b", "c", "..", "."])
PATHS = st.lists(PARTS, min_size=1, max_size=5).map("/".join)


@given(
    st.lists(st.tuples(PATHS, PATHS | PATHS.map(lambda path: f"/{path}") | st.none() | st.just(CONTENT)), max_size=8),
    PATHS,
)
def test_links_lead_where_the_kernel_says(tmp_path_factory: pytest.TempPathFactory,
                                          made: list[tuple[str, str | None]], asked: str) -> None:  # fmt: skip
    root = tmp_path_factory.mktemp("root")
    for path, target in made:
        place = os.path.normpath(root / path)
        # Nothing may be made outside, not even through a link that was made before.
        if not place.startswith(f"{root}/") or not f"{os.path.realpath(os.path.dirname(place))}/".startswith(
            f"{root}/"
        ):
            continue
        try:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            if target is None:
                os.mkdir(place)
            elif target == CONTENT:
                Path(place).write_text(CONTENT)
            else:
                os.symlink(target, place)
        except OSError:
            continue
    tree = Tree(str(root))
    found = tree.locate(asked)
    try:
        expected: os.stat_result | None = os.stat(f"{root}/{asked}")
    except OSError:  # also a/missing/.. and file/.., which realpath would shorten
        expected = None
    if found is None:
        # It led out of the folder, if only on its way.
        assert (
            expected is None
            or ".." in asked
            or any(target and (target[0] == "/" or ".." in target) for _, target in made)
        )
    elif expected is None:
        assert not tree.exists(asked)
    else:
        assert os.path.samestat(os.lstat(found), expected)
        assert found == os.path.realpath(f"{root}/{asked}")
        assert f"{found}/".startswith(f"{root}/")
    # What is opened is what the kernel opens.
    assert tree.read(asked) in ((None,) if expected is None or not stat.S_ISREG(expected.st_mode) else (None, CONTENT))
    if found is not None and expected is not None and stat.S_ISREG(expected.st_mode):
        assert tree.read(asked) == CONTENT


def test_an_own_file_that_is_a_link_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/real").write_text("7\n")
    (tmp_path / "number").symlink_to("a/../a/real")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "out").symlink_to("/etc/passwd")
    tree = Tree(str(tmp_path))
    assert (tree.number("number"), tree.number("loop"), tree.number("out")) == (7, None, None)
    assert len(tree.notes) == 2
