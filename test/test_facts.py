"""Facts travel through JSON, and bad files of facts are refused by field."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramalama_like.errors import ValueProblem
from ramalama_like.facts import (
    MOST_BYTES,
    CdiSpec,
    DeviceNode,
    Gpu,
    HostFacts,
    KfdNode,
    facts_from_plain,
    facts_to_plain,
    is_device_name,
    is_node_path,
)

TEXT = st.text(max_size=20)
COUNT = st.integers(min_value=0, max_value=1 << 62)
MAYBE = st.none() | COUNT
BYTES = st.none() | st.integers(min_value=0, max_value=MOST_BYTES)
CPUS = st.none() | st.integers(1, 4096)
NAME = TEXT.filter(is_device_name)
NAMES = st.lists(NAME, max_size=3).map(tuple)
PATH = TEXT.filter(is_node_path)
PATHS = st.lists(PATH, max_size=3).map(tuple)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
GPUS = st.builds(
    Gpu, vendor=TEXT, pci_address=TEXT, name=TEXT, vram_bytes=BYTES, integrated=st.none() | st.booleans(),
    hip_index=MAYBE, nvidia_index=MAYBE,
)  # fmt: skip
NODES = st.builds(DeviceNode, path=PATH, accessible=st.none() | st.booleans(), group=MAYBE)
SPECS = st.builds(CdiSpec, kind=NAME, names=NAMES, file=PATH, device_nodes=PATHS, missing=PATHS)
KFD = st.builds(KfdNode, number=COUNT, hip_index=COUNT, gfx=TEXT, render_minor=MAYBE)
FACTS = st.builds(
    HostFacts, root=TEXT, os=TEXT, arch=TEXT, wsl=st.booleans(), cpus=CPUS, memory_bytes=BYTES,
    gpus=st.lists(GPUS, max_size=2).map(tuple), nodes=st.lists(NODES, max_size=2).map(tuple),
    cdi=st.lists(SPECS, max_size=2).map(tuple), kfd_nodes=st.lists(KFD, max_size=2).map(tuple), notes=TEXTS,
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


@given(FACTS)
def test_round_trip_through_json(facts):
    assert facts_from_plain(json.loads(json.dumps(facts_to_plain(facts)))) == facts
    assert hash(facts) == hash(facts_from_plain(facts_to_plain(facts)))


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ([], "the whole file"),
        ({"cpus": "4"}, "cpus"),
        ({"cpus": True}, "cpus"),
        ({"wsl": 1}, "wsl"),
        ({"arch": None}, "arch"),
        ({"gpus": {}}, "gpus"),
        ({"gpus": [{"vendor": "amd"}, {"vendor": "amd", "vram_bytes": 1.5}]}, "gpus[1].vram_bytes"),
        ({"gpus": [{}]}, "gpus[0].vendor"),
        ({"gpus": [{"vendor": "amd", "vram_bytes": 10**400}]}, "gpus[0].vram_bytes"),
        ({"memory_bytes": -(1 << 63)}, "memory_bytes"),
        ({"memory_bytes": -1}, "memory_bytes must be from 0 to 1152921504606846976"),
        ({"memory_bytes": 1 << 61}, "memory_bytes"),
        ({"cpus": 0}, "cpus must be from 1 to 1048576"),
        ({"physical_cores": -4}, "physical_cores"),
        ({"cpus": 10**9}, "cpus"),
        ({"cgroup_version": 3}, "cgroup_version must be from 1 to 2"),
        ({"gpus": [{"vendor": "amd", "shared_bytes": -5}]}, "gpus[0].shared_bytes"),
        ({"gpus": [{"vendor": "nvidia", "nvidia_index": -1}]}, "gpus[0].nvidia_index"),
        ({"nodes": [{"path": "/dev/kfd", "group": -1}]}, "nodes[0].group"),
        ({"nodes": [{"path": "/dev/../etc"}]}, "nodes[0].path is no path of a device or file"),
        ({"gpus": [{"vendor": "amd", "render_node": "/dev/a\n--privileged"}]}, "gpus[0].render_node"),
        ({"cdi": [{"kind": "a/b", "names": ["all", "x\ny"], "file": "/x"}]}, "cdi[0].names[1] is no name of a device"),
        ({"cdi": [{"kind": "a/b\0", "names": [], "file": "/x"}]}, "cdi[0].kind"),
        ({"cdi": [{"kind": "a/b", "names": [], "file": "/x", "missing": ["/\0"]}]}, "cdi[0].missing[0]"),
        ({"arch": "\ud800"}, "arch"),
        ({"notes": ["\ud800"]}, "notes[0]"),
        ({"gpus": ["amd"]}, "gpus[0]"),
        ({"cdi": [{"kind": "a/b", "names": [0], "file": "/x"}]}, "cdi[0].names[0]"),
        ({"notes": "text"}, "notes"),
    ],
)
def test_a_wrong_field_is_named(data, field):
    with pytest.raises(ValueProblem) as caught:
        facts_from_plain(data)
    assert field in caught.value.message
    assert caught.value.exit_code == 22


def test_unknown_keys_are_ignored_and_missing_ones_have_defaults():
    assert facts_from_plain({"invented": 1, "gpus": [{"vendor": "amd", "new": []}]}) == HostFacts(gpus=(Gpu("amd"),))


@given(JSON, st.sampled_from(["gpus", "cdi", "nodes", "kfd_nodes", "cpus", "os", "notes", "wsl"]))
def test_any_json_is_facts_or_a_named_problem(data, field):
    for tried in (data, {field: data}, {field: [data]}):
        try:
            facts_from_plain(tried)
        except ValueProblem as problem:
            assert problem.message.startswith("host facts: ")


def test_usable_memory_counts_what_an_integrated_card_shares():
    assert Gpu("amd", vram_bytes=2, shared_bytes=5, integrated=True).usable_bytes == 7
    assert Gpu("amd", vram_bytes=2, shared_bytes=5, integrated=False).usable_bytes == 2
    assert Gpu("amd").usable_bytes is None
