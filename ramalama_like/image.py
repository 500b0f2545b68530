"""Which container image runs the chosen accelerator, and why. The families of images stand in ``data/images.toml``."""

from __future__ import annotations

from ramalama_like import __version__
from ramalama_like.data import load_table
from ramalama_like.errors import ValueProblem
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ramalama_like.accelerator import Accelerator
    from ramalama_like.options import Setting


@value
class Image:
    """A container image, with the reason for it."""

    ref: str  # always with a tag or a digest
    why: str
    origin: str  # default, --image, $RAMALAMA_IMAGE, file:line
    warnings: tuple[str, ...] = ()


def choose_image(
    *,
    accelerator: Accelerator,
    facts_arch: str,
    family: Setting[str],
    explicit: Setting[str],
    overrides: Setting[Mapping[str, str]],
    default_image: Setting[str],
) -> Image:
    """Choose the image: an explicit one, else an override for the backend, else that of the family.

    ``facts_arch`` is the host's architecture in the words of images; empty where it is unknown. ``overrides`` has the
    backends' names as keys, or the dialect's variables. Raises ValueProblem for a reference that cannot be one.
    """
    if explicit.value:
        return Image(_with_tag(explicit.value, explicit.origin), f"given by {explicit.origin}", explicit.origin)
    backend = accelerator.backend
    for key in _override_keys(backend):
        if overrides.value.get(key):
            ref = _with_tag(overrides.value[key], overrides.origin)
            return Image(ref, f"images.{key} of {overrides.origin}", overrides.origin)
    row = load_table("images")["families"][family.value]["images"][backend]
    if default_image.value and row.get("plain"):
        ref = _with_tag(default_image.value, default_image.origin)
        return Image(ref, f"default_image of {default_image.origin}, for {backend}", default_image.origin)
    return _choose_from_family(backend, facts_arch, family)


def choose_tools_image(
    *, facts_arch: str, family: Setting[str], explicit: Setting[str], default_image: Setting[str]
) -> Image:
    """Choose the image that makes GGUF files of safetensors: an explicit one, a configured one, or the family's.

    A family without one leaves it to those that it names besides. Raises ValueProblem for a reference that cannot be.
    """
    for given in (explicit, default_image):
        if given.value:
            return Image(_with_tag(given.value, given.origin), f"given by {given.origin}", given.origin)
    table = load_table("images")
    families, tools = table["families"], table["tools"]
    wanted = (family.value, *families[family.value]["also"], *families)
    name = next(each for each in wanted if each in tools and each in families)
    ref = _family_ref(name, {"name": tools[name]}, facts_arch)
    return Image(ref, f"the {name} family's image with the converter", family.origin)


def _choose_from_family(backend: str, arch: str, family: Setting[str]) -> Image:
    families = load_table("images")["families"]
    own = families[family.value]["images"][backend]
    built_here = "missing" not in own and (not arch or arch in own["architectures"])
    if built_here:
        return Image(
            _family_ref(family.value, own, arch), f"the {family.value} family's image for {backend}", family.origin
        )
    if "missing" in own:
        problem = f"the {family.value} family has no image for {backend}: {own['missing']}"
    else:
        problem = f"the {family.value} family has no {arch} build for {backend}"
    elsewhere = [
        name
        for name in families[family.value]["also"]
        if "missing" not in families[name]["images"][backend]
        and (not arch or arch in families[name]["images"][backend]["architectures"])
    ]
    if elsewhere and (family.is_default or "missing" in own):
        ref = _family_ref(elsewhere[0], families[elsewhere[0]]["images"][backend], arch)
        why = f"{problem}; --image-family {elsewhere[0]} has one"
        # Nobody asked for the default family, so leaving it is no news for the CPU's image.
        silent = family.is_default and own.get("plain")
        return Image(ref, why, family.origin, () if silent else (f"{problem}: {ref} is used",))
    if "missing" in own and backend == "cpu":
        return _any_for_cpu(problem, family)
    if "missing" in own:
        # Metal: there is no such image anywhere. What the CPU's does is at least true.
        cpu = _choose_from_family("cpu", arch, family)
        return Image(cpu.ref, problem, family.origin, (f"{problem}; {cpu.ref} is used", *cpu.warnings))
    hint = f"; --image-family {elsewhere[0]} has one" if elsewhere else ""
    return Image(
        _family_ref(family.value, own, arch),
        f"the {family.value} family's image for {backend}, in spite of the architecture",
        family.origin,
        (problem + hint,),
    )


def _any_for_cpu(problem: str, family: Setting[str]) -> Image:
    """The CPU's image of another family although it was built for other architectures: there is nothing else."""
    families = load_table("images")["families"]
    for name in families[family.value]["also"]:
        own = families[name]["images"]["cpu"]
        if "missing" not in own:
            ref = _family_ref(name, own, "")
            return Image(ref, f"{problem}; that of {name} is used, in spite of the architecture", family.origin,
                         (f"{problem}: {ref} is used, in spite of the architecture",))  # fmt: skip
    raise ValueProblem(f"{problem}, and no family that families.{family.value}.also names has one",
                       "name an image with --image, or another family with --image-family")  # fmt: skip


def _family_ref(family: str, row: Mapping[str, Any], arch: str) -> str:
    table = load_table("images")["families"][family]
    pattern: str = table["ref"]
    tag = table["tag"].replace("{version}", __version__)
    return pattern.replace("{name}", row.get("names", {}).get(arch, row["name"])).replace("{tag}", tag)


def _override_keys(backend: str) -> list[str]:
    """Keys of ``images`` that speak of a backend, the backend's own name first."""
    return [backend, *(key for key, name in load_table("images")["override_keys"].items() if name == backend)]


def _with_tag(ref: str, origin: str) -> str:
    """The reference with ``:latest`` if it has neither tag nor digest. The colon of a registry's port is no tag."""
    ref = ref.strip()
    if not ref or ref.startswith("-") or not ref.isprintable() or any(character.isspace() for character in ref):
        raise ValueProblem(f"{origin}: {ref!r} is not the name of an image",
                           "write it like quay.io/ramalama/ramalama:0.25")  # fmt: skip
    last = ref.rpartition("/")[2]
    return ref if "@" in last or ":" in last else f"{ref}:latest"
