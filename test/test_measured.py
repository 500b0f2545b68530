"""What measurements say: which count, which backend they prefer, and in which words."""

from __future__ import annotations

import pytest
from harness import HOSTS
from hypothesis import given
from hypothesis import strategies as st

from ramalama_like.accelerator import Accelerator, choose_accelerator
from ramalama_like.facts import EngineFacts, Gpu, HostFacts
from ramalama_like.measured import Measured, Speed, card_keys, driver_keys, family_key, host_key, prefer
from ramalama_like.measurement import Measurement
from ramalama_like.options import Setting
from ramalama_like.probe import probe
from ramalama_like.value import replace

HOST = "amd64 + 1002:150e gfx1150"
NOW = "2026-12-01T12:00:00Z"
SIZE = 8_100_000_000


def one(backend: str, test: str, speed: float, time: str = "2026-11-30T10:00:00Z", **more: object) -> Measurement:
    made = Measurement(
        id=f"{backend}{time}", time=time, model="m", backend=backend, test=test, avg_ts=speed, host=HOST,
        size_bytes=SIZE, architecture="llama", on_gpu=backend != "cpu", drivers=("amdgpu",), image_family="ramalama",
    )  # fmt: skip
    return replace(made, **more)


def ask(*records: Measurement, size_bytes: int = SIZE, drivers: tuple[str, ...] = ("amdgpu",)) -> Measured | None:
    return prefer(records, host=HOST, drivers=drivers, family="ramalama", size_bytes=size_bytes, now=NOW)


VULKAN = (one("vulkan", "pp512", 600), one("vulkan", "tg128", 71.4))
ROCM = (one("rocm", "pp512", 900), one("rocm", "tg128", 92))


def test_the_faster_one_and_its_reason() -> None:
    found = ask(*VULKAN, *ROCM)
    assert found == Measured(
        (Speed("rocm", 92, 900, "2026-11-30"), Speed("vulkan", 71.4, 600, "2026-11-30")),
        "measured here on 2026-11-30: rocm 92 t/s, vulkan 71 t/s (8.1 GB model)",
    )
    assert found.faster("vulkan", ["vulkan", "rocm", "cpu"]) == "rocm"
    assert found.faster("rocm", ["vulkan", "rocm", "cpu"]) == ""
    assert found.faster("vulkan", ["vulkan", "cpu"]) == "", "what cannot be used is not weighed"
    assert found.faster("cuda", ["vulkan", "rocm", "cuda"]) == "", "what nobody has measured could be the fastest"


def test_nothing_is_known() -> None:
    assert ask() is None
    assert ask(replace(VULKAN[1], host="arm64")) is None
    assert ask(*VULKAN, size_bytes=3 * SIZE) is None
    assert ask(*VULKAN, size_bytes=SIZE // 3) is None


def test_less_than_five_percent_decide_nothing() -> None:
    found = ask(one("vulkan", "tg128", 100), one("rocm", "tg128", 104))
    assert found is not None
    assert [speed.backend for speed in found.speeds] == ["rocm", "vulkan"]
    assert found.faster("vulkan", ["rocm"]) == ""


def test_a_slow_prompt_can_outweigh_generation_and_is_told() -> None:
    found = ask(one("vulkan", "pp512", 3000), one("vulkan", "tg128", 90), one("rocm", "pp512", 100),
                one("rocm", "tg128", 100))  # fmt: skip
    assert found is not None
    assert found.why == ("measured here on 2026-11-30: vulkan 90 t/s (prompt 3000 t/s), rocm 100 t/s (prompt 100 t/s) "
                         "(8.1 GB model)")  # fmt: skip
    assert found.speeds[1].seconds == 512 / 100 + 256 / 100


def test_a_prompt_that_not_all_have_read_does_not_count() -> None:
    found = ask(*VULKAN, one("rocm", "pp256", 1), one("rocm", "tg128", 92))
    assert found is not None
    assert [(speed.backend, speed.prompt_ts) for speed in found.speeds] == [("rocm", 0.0), ("vulkan", 0.0)]


def test_the_newest_result_of_each_counts() -> None:
    old = one("rocm", "tg128", 10, "2026-10-01T00:00:00Z")
    for records in ((old, *VULKAN, *ROCM), (*VULKAN, *ROCM, old)):
        found = ask(*records)
        assert found is not None
        assert [(speed.backend, speed.generation_ts) for speed in found.speeds] == [("rocm", 92), ("vulkan", 71.4)]


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"time": "2026-06-03T00:00:00Z"}, "rocm of 2026-06-03 does not count: it is older than 180 days"),
        ({"on_gpu": False}, "rocm of 2026-11-30 does not count: the processor computed it"),
        ({"image_family": "local"}, "rocm of 2026-11-30 does not count: it is of local, not of ramalama"),
        ({"image_family": ""}, "rocm of 2026-11-30 does not count: it is of another image, not of ramalama"),
        ({"drivers": ("nvidia 570.1",)}, "rocm of 2026-11-30 does not count: the driver was nvidia 570, and is amdgpu"),
        ({"drivers": ()}, "rocm of 2026-11-30 does not count: the driver was none, and is amdgpu"),
    ],
)
def test_what_does_not_count_is_told(change: dict[str, object], note: str) -> None:
    found = ask(*VULKAN, *(replace(record, **change) for record in ROCM))
    assert found is not None
    assert ([speed.backend for speed in found.speeds], found.notes) == (["vulkan"], (note,))
    alone = ask(*(replace(record, **change) for record in ROCM))
    assert alone == Measured((), "nothing that was measured here counts", (note,))


def test_half_a_year_is_still_fresh() -> None:
    found = ask(one("cpu", "tg128", 5, "2026-06-04T00:00:00Z"))
    assert found is not None
    assert found.notes == ()


def test_only_the_major_number_of_a_driver_matters_and_never_for_the_processor() -> None:
    cuda = one("cuda", "tg128", 100, drivers=("nvidia 570.86.15",))
    for driver, count in (("nvidia 570.133.07", 2), ("nvidia 580.65.06", 1)):
        found = ask(cuda, one("cpu", "tg128", 5, drivers=("nvidia 570.86.15",)), drivers=(driver,))
        assert found is not None
        assert len(found.speeds) == count


@pytest.mark.parametrize(
    "options", [("-ngl", "0"), ("--n-cpu-moe", "3"), ("-p", "512", "-dev", "Vulkan1"), ("--gpu", "1")]
)
def test_what_kept_a_part_away_from_the_card_does_not_count(options: tuple[str, ...]) -> None:
    assert ask(*(replace(record, options=options) for record in VULKAN)) is None


def test_only_the_same_options_are_compared() -> None:
    found = ask(*VULKAN, *(replace(record, options=("-fa", "1")) for record in ROCM))
    assert found is not None
    assert len(found.speeds) == 1


def test_models_are_not_mixed_and_the_better_measured_one_counts() -> None:
    """A nearer model with one backend says less than a farther one with two."""
    far = [replace(record, size_bytes=SIZE * 3 // 2) for record in (*VULKAN, *ROCM)]
    found = ask(*far, *VULKAN)
    assert found is not None
    assert found.why == "measured here on 2026-11-30: rocm 92 t/s, vulkan 71 t/s (12.2 GB model)"
    near = ask(*far, *VULKAN, one("cpu", "pp512", 50), one("cpu", "tg128", 9.5))
    assert near is not None
    assert near.why == "measured here on 2026-11-30: vulkan 71 t/s, cpu 9.5 t/s (8.1 GB model)"


records = st.lists(
    st.builds(
        one,
        st.sampled_from(["vulkan", "rocm", "cpu"]),
        st.sampled_from(["pp512", "tg128", "tg64", "pp512+tg128", "tg128@d4096", "", "x"]),
        st.floats(0, 1e9),
        st.sampled_from(
            ["2026-11-30T10:00:00Z", "2026-02-31T10:00:00Z", "0000-12-31T99:99:99Z", "2027-01-01T00:00:00Z"]
        ),
        host=st.sampled_from([HOST, "arm64"]),
        size_bytes=st.sampled_from([0, 1, SIZE // 2, SIZE, 2 * SIZE, 2**62]),
        on_gpu=st.booleans(),
        image_family=st.sampled_from(["ramalama", ""]),
        options=st.sampled_from([(), ("-r", "1"), ("-ngl", "0")]),
    ),
    max_size=12,
)


@given(records, st.sampled_from([1, SIZE, 2**62]), st.randoms(use_true_random=False))
def test_whatever_is_in_the_file(found: list[Measurement], size_bytes: int, random: object) -> None:
    """Speeds are in order, of known backends, each once; and the order of the file matters only within a second."""
    measured = ask(*found, size_bytes=size_bytes)
    if measured is None:
        return
    names = [speed.backend for speed in measured.speeds]
    assert len(names) == len(set(names))
    assert set(names) <= {record.backend for record in found if record.host == HOST and record.avg_ts > 0}
    seconds = [speed.seconds for speed in measured.speeds]
    assert seconds == sorted(seconds)
    for name in names:
        faster = measured.faster(name, names)
        assert faster in ("", *names[: names.index(name)])
    assert all("does not count: " in note for note in measured.notes)


def test_what_a_machine_is() -> None:
    cards = (Gpu("nvidia", pci_device="10de:2684", driver="nvidia", nvidia_uuid="GPU-secret"),
             Gpu("amd", pci_device="1002:164e", gfx="gfx1036", driver="amdgpu"), Gpu("apple-asahi"))  # fmt: skip
    facts = HostFacts(arch="amd64", gpus=cards, nvidia_driver="570.86.15", kernel="6.1")
    assert host_key(facts) == "amd64 + 1002:164e gfx1036 + 10de:2684 + apple-asahi"
    assert host_key(replace(facts, kernel="6.12", gpus=cards[::-1])) == host_key(facts)
    assert card_keys(facts) == ("10de:2684", "1002:164e gfx1036", "apple-asahi")
    assert driver_keys(facts) == ("amdgpu", "nvidia 570.86.15")
    assert host_key(HostFacts()) == "unknown"
    assert driver_keys(HostFacts()) == ()


def test_what_stands_for_a_program() -> None:
    for image, key in (("", "ramalama"), ("r:5000/a/b", "r:5000/a/b"), ("r:5000/a/b:tag", "r:5000/a/b"),
                       ("a/b:tag@sha256:00", "a/b")):  # fmt: skip
        assert family_key(family="ramalama", image=image, native=False) == key
    assert family_key(family="ramalama", image="x", native=True) == "native"


# What the choice makes of it.


def choose(
    host: str, speeds: dict[str, float], backend: str = "auto", gpus: tuple[str, ...] = (), **environment: str
) -> Accelerator:
    known = [Speed(name, speed, 0.0, "2026-11-30") for name, speed in speeds.items()]
    measured = Measured(tuple(sorted(known, key=lambda speed: speed.seconds)), "MEASURED")
    return choose_accelerator(
        backend=Setting(backend, "default" if backend == "auto" else "--backend"), devices=Setting(()),
        keep_groups=Setting(False), gpus=Setting(gpus, "--gpu"), facts=probe(str(HOSTS / host)),
        engine=EngineFacts("podman"), family="ramalama", environment=environment, measured=measured if speeds else None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("host", "speeds", "backend"),
    [
        ("two-mi300x", {}, "vulkan"),
        ("two-mi300x", {"rocm": 92, "vulkan": 71}, "rocm"),
        ("two-mi300x", {"rocm": 72, "vulkan": 71}, "vulkan"),
        ("two-mi300x", {"rocm": 92, "cpu": 10}, "vulkan"),
        ("two-mi300x", {"vulkan": 71, "cpu": 200, "rocm": 92}, "cpu"),
        ("radeon-890m", {"rocm": 92, "vulkan": 71}, "vulkan"),
        ("rtx-4090", {"vulkan": 200, "cuda": 100}, "vulkan"),
        ("rtx-4090-without-cdi", {"cuda": 100, "cpu": 5}, "cpu"),
        ("no-gpu", {"vulkan": 100, "cpu": 5}, "cpu"),
    ],
)
def test_what_can_be_used_is_weighed_and_nothing_else(host: str, speeds: dict[str, float], backend: str) -> None:
    chosen, otherwise = choose(host, speeds), choose(host, {})
    assert chosen.backend == backend
    assert [each.backend for each in chosen.candidates if each.chosen] == [backend]
    assert sorted(each.backend for each in chosen.candidates) == sorted(each.backend for each in otherwise.candidates)
    assert chosen.why.endswith("; MEASURED") is bool(speeds)
    moved = f"{backend} is faster here than {otherwise.backend}, the first choice otherwise; MEASURED"
    assert (chosen.why == moved) is (backend != otherwise.backend)
    assert chosen.warnings == (otherwise.warnings if backend != "cpu" or otherwise.backend == "cpu" else ())
    for explicit in ("vulkan", "rocm", "cpu"):
        asked, without = choose(host, speeds, explicit), choose(host, {}, explicit)
        assert replace(asked, candidates=()) == replace(without, candidates=())


def test_the_reasons_of_all() -> None:
    chosen = choose("two-mi300x", {"vulkan": 71, "rocm": 92})
    cards = chosen.name
    assert [(each.backend, each.why) for each in chosen.candidates][:2] == [
        ("rocm", f"the fastest here for {cards}, as bench has measured"),
        ("vulkan", f"{cards}: rocm comes first"),
    ]


def test_the_processor_never_takes_the_place_of_cards_that_were_chosen() -> None:
    speeds = {"cpu": 200.0, "rocm": 92.0, "vulkan": 71.0}
    assert choose("two-mi300x", speeds).backend == "cpu"
    assert choose("two-mi300x", speeds, gpus=("0",)).backend == "rocm"
    assert choose("two-mi300x", speeds, HIP_VISIBLE_DEVICES="1").backend == "rocm"
