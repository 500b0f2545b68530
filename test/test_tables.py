"""The tables in data/: compiled in step, complete, and consistent with each other."""

import pytest

from ramalama_like.data import load_table
from ramalama_like.data.compile import TARGET, compile_tables
from ramalama_like.options import BACKENDS, IMAGE_FAMILIES

ACCELERATORS = load_table("accelerators")
IMAGES = load_table("images")


def test_compiled_is_in_step():
    assert TARGET.read_text("utf-8") == compile_tables(), "run: python -m ramalama_like.data.compile"


def test_every_backend_of_the_command_line_has_a_row():
    names = {ACCELERATORS["aliases"].get(name, name) for name in BACKENDS if name != "auto"}
    assert names == set(ACCELERATORS["backends"])


def test_every_family_of_the_command_line_exists():
    assert set(IMAGES["families"]) == set(IMAGE_FAMILIES)
    assert IMAGES["default_family"] in IMAGES["families"]


@pytest.mark.parametrize("family", IMAGE_FAMILIES)
@pytest.mark.parametrize("backend", ACCELERATORS["backends"])
def test_every_backend_has_an_image_or_a_reason(family, backend):
    row = IMAGES["families"][family]["images"][backend]
    if "missing" in row:
        assert set(row) == {"missing"} and len(row["missing"]) > 10
    else:
        assert row["name"] and row["architectures"]
        assert ("driver_minimum" in row) is ("driver_full" in row) is (backend == "cuda")
        assert ("gfx" in row) is (backend == "rocm")


@pytest.mark.parametrize("family", IMAGE_FAMILIES)
def test_the_cpu_has_an_image_in_every_family(family):
    assert IMAGES["families"][family]["images"]["cpu"]["plain"]


def test_vendors_and_backends_name_each_other():
    assert set(ACCELERATORS["vendor_order"]) == set(ACCELERATORS["vendors"])
    for vendor, row in ACCELERATORS["vendors"].items():
        for backend in row["preference"]:
            assert vendor in ACCELERATORS["backends"][backend]["vendors"]
    for row in ACCELERATORS["variables"].values():
        assert row.get("vendor", "amd") in ACCELERATORS["vendors"]
        assert set(row.get("read_by", ())) <= set(ACCELERATORS["backends"])
    assert set(IMAGES["override_keys"].values()) <= set(ACCELERATORS["backends"])
    for family in IMAGES["families"].values():
        assert set(family["also"]) <= set(IMAGES["families"])


def test_gfx_names_are_spelt_as_kfd_gives_them():
    for family in IMAGES["families"].values():
        for name in family["images"]["rocm"].get("gfx", ()):
            assert name.startswith("gfx") and name == name.lower()
    assert "gfx1150" in ACCELERATORS["integrated_gfx"]
    assert "gfx1150" not in IMAGES["families"]["ramalama"]["images"]["rocm"]["gfx"]


def test_an_unknown_table_is_a_programming_error():
    with pytest.raises(KeyError):
        load_table("no-such-table")
